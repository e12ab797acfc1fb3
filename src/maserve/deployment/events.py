"""What a Deployment's events say (behaviour 5.4, 12)."""

from maserve.deployment.keys import stage_name
from maserve.runtime import EventRecorder
from maserve.wire import v2

_FAILED = (
    v2.DEPLOYMENT_STAGE_ROLLOUT_FAILED,
    v2.DEPLOYMENT_STAGE_ROLLBACK_FAILED,
    v2.DEPLOYMENT_STAGE_CLEAN_UP_FAILED,
)


def record_changes(
    recorder: EventRecorder, before: v2.Deployment, after: v2.Deployment, error: str
) -> None:
    """Record what one pass changed: the stage, an early end, an error that ended the pass."""
    if error:
        recorder.warning(after, "ReconciliationError", error)
    old, new = before.status.stage, after.status.stage
    if old == new:
        return
    text = f"state transition from {stage_name(old)} to {stage_name(new)}"
    recorder.normal(after, "StageChange", text)
    if new in _FAILED:
        text = f"ended early in {stage_name(new)}: {after.status.message}"
        recorder.normal(after, "EarlyTermination", text)
