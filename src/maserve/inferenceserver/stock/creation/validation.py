"""`Validation`: the configuration can be served at all (extension guide, section 3)."""

from maserve.base.keys import ClusterId
from maserve.conditions import false_condition, true_condition
from maserve.inferenceserver.maker import backend_name, find_maker
from maserve.inferenceserver.stock.ports import Ports
from maserve.wire import api, v2

ROLLOUT_STRATEGY = "michelangelo.ai/cluster-rollout-strategy"
"""Annotation a user may set; `rolling` is the default and the only strategy (behaviour 1.4)."""


class Validation:
    """Says what is wrong with the spec, naming the field; failures are not retried."""

    type = "Validation"

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    async def retrieve(
        self, resource: v2.InferenceServer, previous: api.Condition
    ) -> api.Condition:
        problem = find_problem(resource, self._ports.backends.is_known(resource.spec.backend_type))
        if problem is None:
            return true_condition(previous, self._ports.now_s())
        reason, message = problem
        return false_condition(previous, message, reason, self._ports.now_s())

    async def run(self, _resource: v2.InferenceServer, previous: api.Condition) -> api.Condition:
        return previous


def find_problem(server: v2.InferenceServer, backend_known: bool) -> tuple[str, str] | None:
    """Return reason and message of the first broken rule, None when all hold."""
    if not backend_known:
        name = backend_name(server.spec.backend_type)
        return "InvalidBackendType", f"spec.backend_type {name} has no backend here"
    maker = find_maker(server)
    if maker not in (None, server.spec.backend_type):
        text = (
            f"spec.backend_type cannot become {backend_name(server.spec.backend_type)} while "
            f"replicas of {backend_name(maker)} are there: set spec.decom_spec.decommission first, "
            "or make another server"
        )
        return "BackendTypeChanged", text
    clusters = [ClusterId(target.cluster_id) for target in server.spec.cluster_targets]
    if not clusters:
        return "NoClusterTargets", "spec.cluster_targets needs at least one cluster"
    if not all(clusters):
        return "InvalidClusterTarget", "spec.cluster_targets[].cluster_id must not be empty"
    if len(set(clusters)) != len(clusters):
        twice = sorted({str(cluster) for cluster in clusters if clusters.count(cluster) > 1})
        return "InvalidClusterTarget", f"spec.cluster_targets lists {', '.join(twice)} twice"
    strategy = server.metadata.annotations.get(ROLLOUT_STRATEGY, "rolling")
    if strategy != "rolling":
        return (
            "InvalidRolloutStrategy",
            f"annotation {ROLLOUT_STRATEGY} must be rolling: {strategy!r}",
        )
    if server.spec.init_spec.num_instances < 0:
        return "InvalidInstances", "spec.init_spec.num_instances must not be negative"
    return None
