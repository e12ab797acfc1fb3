"""What entering a stage does to a Deployment (behaviour 5.4)."""

from maserve.conditions import put_condition
from maserve.deployment.decide import Lifecycle
from maserve.deployment.keys import is_terminal
from maserve.deployment.places import (
    forget_places,
    leave_candidate_place,
    settle_candidate_place,
)
from maserve.resource.annotations import (
    FINISHED_FOR,
    HEALTH_GATE_REASON,
    HEALTH_GATE_SHORT_SINCE,
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

    The conditions stay with the stage that they make, so that somebody can wait for them; the next
    pass drops those that its actors do not know (extension guide, section 2). A copy stays in
    `conditions_snapshot` until the next rollout begins. A rollback or a cleanup that failed is the
    same attempt still.
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
        settle_candidate_place(deployment)
        status.message = ""
        set_annotation(deployment, HEALTH_GATE_REASON, None)
    if status.stage == v2.DEPLOYMENT_STAGE_ROLLBACK_COMPLETE:
        leave_candidate_place(deployment)
    if status.stage == v2.DEPLOYMENT_STAGE_CLEAN_UP_COMPLETE:
        _forget(deployment)
    if status.stage not in _TRIED_AGAIN:
        _keep_snapshot(status)


def _keep_snapshot(status: v2.DeploymentStatus) -> None:
    """Copy the conditions; a rollback's are put beside those of the rollout that it undoes."""
    if status.stage != v2.DEPLOYMENT_STAGE_ROLLBACK_COMPLETE:
        del status.conditions_snapshot[:]
    for condition in status.conditions:
        put_condition(status.conditions_snapshot, condition)


def _forget(deployment: v2.Deployment) -> None:
    """Nothing is placed any more: clear the revisions and the record of where they were."""
    deployment.status.ClearField("current_revision")
    deployment.status.ClearField("candidate_revision")
    deployment.status.message = ""
    forget_places(deployment)
