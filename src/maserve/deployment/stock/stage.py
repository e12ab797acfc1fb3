"""From conditions to a stage (behaviour 5.4)."""

from maserve.conditions import TRUE, find_condition
from maserve.deployment.stock.cleanup import cleanup_complete
from maserve.deployment.stock.rollback import rollback_complete
from maserve.deployment.stock.rollout import rollout_complete
from maserve.deployment.stock.steadystate import state_steady
from maserve.wire import v2

_COMPLETE = {
    rollout_complete.TYPE: v2.DEPLOYMENT_STAGE_ROLLOUT_COMPLETE,
    rollback_complete.TYPE: v2.DEPLOYMENT_STAGE_ROLLBACK_COMPLETE,
    cleanup_complete.TYPE: v2.DEPLOYMENT_STAGE_CLEAN_UP_COMPLETE,
}

_EARLY = ("Validated", "AssetsPrepared")


def parse_stage(deployment: v2.Deployment) -> v2.DeploymentStage:
    """Return the stage the conditions speak of; none, or a steady state's, leave it as it is.

    They are walked in order: a last step that is TRUE counts only when every earlier one is.
    """
    status = deployment.status
    conditions = status.conditions
    if not conditions or find_condition(conditions, state_steady.TYPE) is not None:
        return status.stage
    for condition in conditions:
        if condition.status != TRUE:
            return _stage_of(condition.type)
        if condition.type in _COMPLETE:
            return _COMPLETE[condition.type]
    return status.stage


def _stage_of(unmet: str) -> v2.DeploymentStage:
    if unmet == cleanup_complete.TYPE:
        return v2.DEPLOYMENT_STAGE_CLEAN_UP_IN_PROGRESS
    if unmet.startswith(rollback_complete.TYPE):
        return v2.DEPLOYMENT_STAGE_ROLLBACK_IN_PROGRESS
    return v2.DEPLOYMENT_STAGE_VALIDATION if unmet in _EARLY else v2.DEPLOYMENT_STAGE_PLACEMENT
