"""What one reconcile of a Deployment does. Pure.

Source: extension guide, section 2; behaviour 5.2 and 5.3.
"""

from dataclasses import dataclass
from enum import StrEnum

from maserve.base.keys import ModelName
from maserve.deployment.keys import (
    ALERT_FIRED,
    DESIRED_CHANGED,
    ROLLOUT_FAILED,
    candidate,
    current,
    desired,
    has_other_target,
    is_cleanup,
    is_terminal,
    server_name,
)
from maserve.deployment.notes import without_note
from maserve.deployment.places import (
    candidate_server,
    describe_candidate,
    is_live,
    is_moving,
    is_wanted,
)
from maserve.resource.annotations import (
    CANDIDATE_SERVER,
    FINISHED_FOR,
    HEALTH_GATE_REASON,
    PLACED_ON,
    RETRY,
    ROLLBACK_REASON,
    ROLLOUT_COUNT,
    STARTED_FOR,
    is_retry_new,
)
from maserve.resource.metadata import is_deleting, set_annotation
from maserve.wire import v2

_INVALID = v2.DEPLOYMENT_STAGE_INVALID
_ROLLING_BACK = v2.DEPLOYMENT_STAGE_ROLLBACK_IN_PROGRESS
_NOTHING_KNOWN = (_INVALID, v2.DEPLOYMENT_STAGE_CLEAN_UP_FAILED)
"""What is left of the candidate then, only a new rollout tells."""
_UNDONE = (v2.DEPLOYMENT_STAGE_ROLLBACK_COMPLETE, v2.DEPLOYMENT_STAGE_ROLLBACK_FAILED)
_AT_REST = (v2.DEPLOYMENT_STAGE_ROLLOUT_COMPLETE, v2.DEPLOYMENT_STAGE_ROLLBACK_COMPLETE)


class Lifecycle(StrEnum):
    """Which condition plugin a pass runs."""

    CLEANUP = "cleanup"
    ROLLOUT = "rollout"
    ROLLBACK = "rollback"
    STEADY = "steady"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """What the health gate said; `asked` is False when nobody had to ask."""

    asked: bool = False
    healthy: bool = True


def needs_gate(deployment: v2.Deployment) -> bool:
    """Tell whether a rollout is under way, so that the health gate must be asked first.

    Not during a rollback: nothing can stop that any more, and the reason for it must stay.
    """
    is_going_on = _in_progress(deployment) and deployment.status.stage != _ROLLING_BACK
    return is_going_on and not _wants_cleanup(deployment)


def decide(deployment: v2.Deployment, gate: Gate) -> Lifecycle:
    """Choose the lifecycle and record its start in `deployment`, the caller's own copy.

    First match wins: cleanup, rollout in progress, failed rollout, new desired revision, failed
    rollback, steady state. A rollback that failed goes on: what a retry or a repair clears later
    must not leave a cluster with the wrong model. Repeatable: a second call after a crash between
    the writes it leads to changes nothing more.
    """
    if _wants_cleanup(deployment):
        return _begin_cleanup(deployment)
    if _in_progress(deployment):
        return _go_on(deployment, gate)
    stage = deployment.status.stage
    if stage == v2.DEPLOYMENT_STAGE_ROLLOUT_FAILED and candidate(deployment):
        return _begin_rollback(deployment, ROLLOUT_FAILED, _failed_message(deployment))
    if _is_new_desired(deployment):
        return _begin_rollout(deployment)
    if stage == v2.DEPLOYMENT_STAGE_ROLLBACK_FAILED and candidate(deployment):
        return Lifecycle.ROLLBACK
    if stage == v2.DEPLOYMENT_STAGE_ROLLOUT_COMPLETE:
        deployment.status.message = ""  # what was said while no plugin was found, is over
    return _rest(deployment) if stage in _AT_REST else Lifecycle.NOTHING


def _rest(deployment: v2.Deployment) -> Lifecycle:
    """Stay; a start that was recorded, and taken back before anything came of it, never was."""
    annotations = deployment.metadata.annotations
    if is_live(deployment) and STARTED_FOR in annotations:
        set_annotation(deployment, STARTED_FOR, annotations.get(FINISHED_FOR))
    return Lifecycle.STEADY


def rollout_request(deployment: v2.Deployment) -> str:
    """Return what identifies one wish of the user: the revision, its generation, the retry text."""
    wish = deployment.spec.desired_revision
    retry = deployment.metadata.annotations.get(RETRY, "")
    return f"{wish.namespace}/{wish.name}@{deployment.metadata.generation}" + (
        f"+{retry}" if retry else ""
    )


def _wants_cleanup(deployment: v2.Deployment) -> bool:
    status = deployment.status
    if is_deleting(deployment):
        return True
    if status.stage == v2.DEPLOYMENT_STAGE_CLEAN_UP_IN_PROGRESS:
        return True
    recorded = deployment.metadata.annotations.get(PLACED_ON, "")
    placed = bool(candidate(deployment) or current(deployment) or recorded)
    if deployment.spec.deletion_spec.deleted:
        return placed or status.stage != v2.DEPLOYMENT_STAGE_CLEAN_UP_COMPLETE
    return placed and (not desired(deployment) or has_other_target(deployment))


def _begin_cleanup(deployment: v2.Deployment) -> Lifecycle:
    if not is_cleanup(deployment.status.stage):
        deployment.status.stage = v2.DEPLOYMENT_STAGE_CLEAN_UP_IN_PROGRESS
    return Lifecycle.CLEANUP


def _in_progress(deployment: v2.Deployment) -> bool:
    stage = deployment.status.stage
    return stage != _INVALID and not is_terminal(stage) and not is_cleanup(stage)


def _go_on(deployment: v2.Deployment, gate: Gate) -> Lifecycle:
    """Roll back or go on rolling out; a rollback that has started runs to completion."""
    if deployment.status.stage == _ROLLING_BACK:
        return Lifecycle.ROLLBACK
    if _may_roll_back(deployment):
        if not is_wanted(deployment):
            return _begin_rollback(deployment, DESIRED_CHANGED, _changed_message(deployment))
        if not gate.healthy and current(deployment):
            return _begin_rollback(deployment, ALERT_FIRED, _alert_message(deployment))
    set_annotation(deployment, ROLLBACK_REASON, None)
    return Lifecycle.ROLLOUT


def _may_roll_back(deployment: v2.Deployment) -> bool:
    strategy = deployment.spec.strategy
    is_blast = strategy.WhichOneof("rollout_strategy") == "blast"
    return not is_blast or strategy.blast.with_rollback_trigger


def _begin_rollback(deployment: v2.Deployment, reason: str, message: str) -> Lifecycle:
    deployment.status.stage = _ROLLING_BACK
    deployment.status.message = message
    del deployment.status.conditions[:]  # those of the rollout never count for undoing it
    set_annotation(deployment, ROLLBACK_REASON, reason)
    return Lifecycle.ROLLBACK


def _has_candidate_to_undo(deployment: v2.Deployment) -> bool:
    return bool(candidate(deployment)) and not is_live(deployment)


def _changed_message(deployment: v2.Deployment) -> str:
    tried, wanted = candidate(deployment), desired(deployment)
    if deployment.spec.inference_server.name != candidate_server(deployment):
        tried = ModelName(f"{tried} on server {candidate_server(deployment)}")
        wanted = ModelName(f"{wanted} on server {deployment.spec.inference_server.name}")
    return f"desired model changed from {tried} to {wanted}; rolling back first"


def _alert_message(deployment: v2.Deployment) -> str:
    reason = deployment.metadata.annotations.get(HEALTH_GATE_REASON, "")
    cause = f" ({reason})" if reason else ""
    text = f"health gate failed while rolling out {describe_candidate(deployment)}{cause}"
    return f"{text}; rolling back to {_describe_current(deployment)}"


def _failed_message(deployment: v2.Deployment) -> str:
    back = _describe_current(deployment)
    where = f"rolling back to {back}" if back else "no previous revision, removing it"
    said = without_note(deployment.status.message)
    cause = f" ({said})" if said else ""
    return f"rollout of {describe_candidate(deployment)} failed{cause}; {where}"


def _describe_current(deployment: v2.Deployment) -> str:
    """Name what there is to go back to; empty when there is nothing."""
    back = current(deployment)
    return f"{back} on server {server_name(deployment)}" if back and is_moving(deployment) else back


def _is_new_desired(deployment: v2.Deployment) -> bool:
    if not desired(deployment) or deployment.spec.deletion_spec.deleted:
        return False
    if not is_wanted(deployment) or deployment.status.stage in _NOTHING_KNOWN:
        return True
    return _is_begun(deployment) or _is_wanted_again(deployment) or _is_retry(deployment)


def _is_begun(deployment: v2.Deployment) -> bool:
    """Tell whether a start was recorded, and the status that follows it was not written."""
    annotations = deployment.metadata.annotations
    started = annotations.get(STARTED_FOR, "")
    is_recorded = started not in ("", annotations.get(FINISHED_FOR, ""))
    return is_recorded and _has_candidate_to_undo(deployment)


def _is_wanted_again(deployment: v2.Deployment) -> bool:
    """Tell whether the candidate has not failed: its wish was taken back and is there again."""
    was_taken_back = deployment.metadata.annotations.get(ROLLBACK_REASON, "") == DESIRED_CHANGED
    is_undone = deployment.status.stage in _UNDONE and _has_candidate_to_undo(deployment)
    return is_undone and was_taken_back


def _is_retry(deployment: v2.Deployment) -> bool:
    """Tell whether a user asks again for the revision that failed."""
    failed = not is_live(deployment) or deployment.status.stage not in _AT_REST
    return failed and is_retry_new(deployment.metadata.annotations)


def _begin_rollout(deployment: v2.Deployment) -> Lifecycle:
    """Start anew, or rest where the current revision is wanted again after another was undone.

    Where the undoing failed, or the stage was lost, nobody knows what is left: then the current
    revision is rolled out again, which changes nothing that is in place already.
    """
    status = deployment.status
    status.candidate_revision.CopyFrom(deployment.spec.desired_revision)
    set_annotation(deployment, CANDIDATE_SERVER, deployment.spec.inference_server.name or None)
    set_annotation(deployment, ROLLBACK_REASON, None)
    if is_live(deployment) and status.stage in _AT_REST:
        status.message = ""
        return Lifecycle.STEADY
    request = rollout_request(deployment)
    if deployment.metadata.annotations.get(STARTED_FOR) != request:
        count = _next_count(deployment.metadata.annotations.get(ROLLOUT_COUNT))
        set_annotation(deployment, ROLLOUT_COUNT, count)
        set_annotation(deployment, STARTED_FOR, request)
    status.stage = v2.DEPLOYMENT_STAGE_VALIDATION
    status.message = ""
    del status.conditions[:], status.conditions_snapshot[:]
    return Lifecycle.ROLLOUT


def _next_count(text: str | None) -> str:
    if text is None:
        return "0"
    return str(int(text) + 1) if text.isdecimal() else "0"
