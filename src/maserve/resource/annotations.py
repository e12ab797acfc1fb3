"""The annotations of a Deployment, as spelled on the wire (behaviour 1.4).

Controllers and clients take their names from here.
"""

from collections.abc import Mapping

ROLLOUT_COUNT = "deployment.rollout.count"
"""`"0"` at the first rollout, one more for each later one."""

ROLLBACK_REASON = "deployment.rollback.reason"
"""Why the last rollback began; removed when a new rollout starts."""

TARGET_CLUSTERS = "deployment.michelangelo.ai/target-clusters"
"""The placement snapshot: JSON list of clusters in rollout order."""

BACKEND_TYPE = "deployment.michelangelo.ai/backend-type"
"""The backend's enum name at the time of placement."""

PLACED_ON = "deployment.michelangelo.ai/inference-server"
"""The InferenceServer on which the current revision is served, or a first one is being made."""

PLACEMENT = (TARGET_CLUSTERS, BACKEND_TYPE, PLACED_ON)
"""The annotations that record where something is placed."""

CANDIDATE_SERVER = "deployment.michelangelo.ai/candidate-inference-server"
"""The InferenceServer of the rollout under way, or of the last one tried."""

CANDIDATE_CLUSTERS = "deployment.michelangelo.ai/candidate-target-clusters"
"""While a Deployment moves to another server: the placement snapshot there."""

CANDIDATE_BACKEND = "deployment.michelangelo.ai/candidate-backend-type"
"""While a Deployment moves to another server: the backend's enum name there."""

CANDIDATE_PLACEMENT = (CANDIDATE_CLUSTERS, CANDIDATE_BACKEND, CANDIDATE_SERVER)
"""The annotations that record where a candidate is being made."""

KNOWN_SERVERS = "deployment.michelangelo.ai/known-inference-servers"
"""JSON list of every InferenceServer that may hold something of this Deployment, written before
anything is made there: a move must leave nothing behind."""

RESTART_REPLICAS = "inferenceserver.michelangelo.ai/restart-replicas"
"""On an InferenceServer: JSON of replica names with instants; a replica of such a name that is not
younger than that is replaced. `maserve restart-replica` writes it."""

HEALTH_GATE_REASON = "deployment.michelangelo.ai/health-gate-reason"
"""Text of the last failed gate; removed when the gate passes."""

HEALTH_GATE_SHORT_SINCE = "deployment.michelangelo.ai/health-gate-short-since"
"""Since when the gate sees a replica missing, or one of unknown start not loaded; ISO 8601."""

STARTED_FOR = "deployment.michelangelo.ai/rollout-started-for"
"""Which request started the rollout under way: makes counting rollouts repeatable after a crash."""

FINISHED_FOR = "deployment.michelangelo.ai/rollout-finished-for"
"""The request whose rollout has ended, well or not: only then is a retry text used up."""

RETRY = "deployment.michelangelo.ai/retry"
"""A user changes this to try a revision again that has failed; any new text counts."""


def is_retry_new(annotations: Mapping[str, str]) -> bool:
    """Tell whether there is a retry text that no rollout which has ended was asked for with.

    A request ends with `+` and that text, if there is one; nothing before has a `+`.
    """
    asked = annotations.get(RETRY, "")
    return bool(asked) and asked != annotations.get(FINISHED_FOR, "").partition("+")[2]
