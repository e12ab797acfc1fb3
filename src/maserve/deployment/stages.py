"""What entering a stage does to a Deployment (behaviour 5.4)."""

from maserve.deployment.decide import Lifecycle
from maserve.deployment.keys import is_terminal
from maserve.resource.annotations import (
    FINISHED_FOR,
    HEALTH_GATE_REASON,
    HEALTH_GATE_SHORT_SINCE,
    PLACEMENT,
    STARTED_FOR,
)
from maserve.resource.metadata import set_annotation
from maserve.wire import v2

_TRIED_AGAIN = (v2.DEPLOYMENT_STAGE_ROLLBACK_FAILED, v2.DEPLOYMENT_STAGE_CLEAN_UP_FAILED)


def failed_stage(lifecycle: Lifecycle) -> v2.DeploymentStage:
    """Return the stage of a lifecycle that has failed for good."""
    match lifecycle:
        case Lifecycle.CLEANUP:
            return v2.DEPLOYMENT_STAGE_CLEAN_UP_FAILED
        case Lifecycle.ROLLBACK:
            return v2.DEPLOYMENT_STAGE_ROLLBACK_FAILED
        case _:
            return v2.DEPLOYMENT_STAGE_ROLLOUT_FAILED


def enter_stage(deployment: v2.Deployment) -> None:
    """Settle revisions and conditions on reaching a terminal stage; other stages change nothing.

    Old conditions never count for the next attempt: they are cleared, a failed rollout's are kept
    in `conditions_snapshot`. A rollback or a cleanup that failed is the same attempt still.
    """
    status = deployment.status
    if not is_terminal(status.stage):
        return
    set_annotation(
        deployment, FINISHED_FOR, deployment.metadata.annotations.get(STARTED_FOR) or None
    )
    set_annotation(deployment, HEALTH_GATE_SHORT_SINCE, None)
    if status.stage == v2.DEPLOYMENT_STAGE_ROLLOUT_COMPLETE:
        status.current_revision.CopyFrom(status.candidate_revision)
        status.message = ""
        set_annotation(deployment, HEALTH_GATE_REASON, None)
    if status.stage == v2.DEPLOYMENT_STAGE_ROLLOUT_FAILED:
        del status.conditions_snapshot[:]
        status.conditions_snapshot.extend(status.conditions)
    if status.stage == v2.DEPLOYMENT_STAGE_CLEAN_UP_COMPLETE:
        _forget(deployment)
    if status.stage not in _TRIED_AGAIN:
        del status.conditions[:]


def _forget(deployment: v2.Deployment) -> None:
    """Nothing is placed any more: clear the revisions and the record of where they were."""
    deployment.status.ClearField("current_revision")
    deployment.status.ClearField("candidate_revision")
    deployment.status.message = ""
    for name in PLACEMENT:
        set_annotation(deployment, name, None)
