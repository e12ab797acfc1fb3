"""What a Deployment's events say (behaviour 5.4, 12)."""

from maserve.deployment.keys import is_cleanup, stage_name
from maserve.runtime import EventRecorder
from maserve.wire import v2

_STATE = v2.DeploymentState
_HEALTHY, _UNHEALTHY = v2.DEPLOYMENT_STATE_HEALTHY, v2.DEPLOYMENT_STATE_UNHEALTHY

_FAILED = (
    v2.DEPLOYMENT_STAGE_ROLLOUT_FAILED,
    v2.DEPLOYMENT_STAGE_ROLLBACK_FAILED,
    v2.DEPLOYMENT_STAGE_CLEAN_UP_FAILED,
)


def record_changes(
    recorder: EventRecorder, before: v2.Deployment, after: v2.Deployment, error: str
) -> None:
    """Record what one pass changed: stage, state, an early end, an error that ended the pass."""
    if error:
        recorder.warning(after, "ReconciliationError", error)
    _record_state(recorder, before, after)
    old, new = before.status.stage, after.status.stage
    if old == new:
        return
    text = f"state transition from {stage_name(old)} to {stage_name(new)}"
    recorder.normal(after, "StageChange", text)
    if new in _FAILED:
        text = f"ended early in {stage_name(new)}: {after.status.message}"
        recorder.normal(after, "EarlyTermination", text)


def _record_state(recorder: EventRecorder, before: v2.Deployment, after: v2.Deployment) -> None:
    """Tell once that requests may not be answered, and why, and once that they are again."""
    old, new = before.status.state, after.status.state
    if old == new or new not in (_HEALTHY, _UNHEALTHY):
        return
    text = f"{_STATE.Name(old)} to {_STATE.Name(new)}"
    is_alarm = new == _UNHEALTHY and not is_cleanup(after.status.stage)
    if is_alarm:
        recorder.warning(after, "StateChange", f"{text}: {after.status.message}")
    else:
        recorder.normal(after, "StateChange", text)
