"""How an object stands to a goal: there, on its way, or never without another change. Pure."""

from collections.abc import Iterable

from maserve.cli.fields import condition_status, conditions_of, status_value, why
from maserve.cli.goals import Aspect, Goal
from maserve.resource import Resource
from maserve.resource.annotations import (
    CANDIDATE_SERVER,
    FINISHED_FOR,
    PLACED_ON,
    STARTED_FOR,
    is_retry_new,
)
from maserve.wire import api, v2

_FINAL = ("ROLLBACK_COMPLETE", "ROLLBACK_FAILED", "CLEAN_UP_COMPLETE", "CLEAN_UP_FAILED")
"""Stages that no wait outlasts: left by the user's next change, a failed one also once its cause is
removed. ROLLOUT_FAILED is not one: a rollback follows."""

_ENDS = (*_FINAL, "ROLLOUT_COMPLETE", "ROLLOUT_FAILED")

_ROLLBACK = ("ROLLOUT_FAILED", "ROLLBACK_IN_PROGRESS", "ROLLBACK_COMPLETE", "ROLLBACK_FAILED")

_FAILED = ("ROLLOUT_FAILED", "ROLLBACK_COMPLETE", "ROLLBACK_FAILED")
"""Stages of a rollout that failed, in which a user may ask for the same revision again."""

_LAST_CONDITIONS = {
    "rolloutcomplete": "ROLLOUT_COMPLETE",
    "rollbackcomplete": "ROLLBACK_COMPLETE",
    "cleanupcomplete": "CLEAN_UP_COMPLETE",
}
"""The last conditions and the stages they make; they are TRUE for one moment, and in the snapshot
after it, so that a plugin which keeps neither can be waited for too."""


def is_met(goal: Goal, resource: Resource) -> bool:
    """Tell whether an object that exists is where the goal wants it, as of its newest spec."""
    match goal.aspect:
        case Aspect.DELETE:
            return False
        case Aspect.CONDITION:
            return _has_condition(goal, resource)
        case Aspect.STAGE | Aspect.STATE:
            is_there = status_value(resource, goal.aspect) == goal.value
            if is_there:
                return _is_of_cleanup(goal) or is_fresh(resource)
            return _is_of_rollout_end(goal) and _is_taken_back(resource) and _is_healthy(resource)


def is_fresh(resource: Resource) -> bool:
    """Tell whether the status speaks of the wish as it is now, not as it was before."""
    match resource:
        case v2.InferenceServer():
            return resource.status.observed_generation >= resource.metadata.generation
        case v2.Deployment() if resource.spec.deletion_spec.deleted:
            return status_value(resource, "stage").startswith("CLEAN_UP")
        case v2.Deployment():
            desired, candidate = resource.spec.desired_revision, resource.status.candidate_revision
            is_known = not desired.name or desired == candidate
            return is_known and not _is_moving(resource) and not _is_retry_waiting(resource)
        case _:
            return True


def dead_end(goal: Goal, resource: Resource) -> str:
    """Say why the goal is out of reach without another change by the user; empty when it is not."""
    if goal.aspect is Aspect.DELETE or is_met(goal, resource) or not is_fresh(resource):
        return ""
    if isinstance(resource, v2.Deployment):
        return _dead_end_of_deployment(goal, resource)
    if isinstance(resource, v2.InferenceServer) and status_value(resource, "state") == "FAILED":
        return f"state is FAILED: {why(resource) or 'no reason given'}"
    return ""


def _dead_end_of_deployment(goal: Goal, deployment: v2.Deployment) -> str:
    stage = status_value(deployment, "stage")
    if _is_over(goal, deployment):
        return f"stage is {stage}: {why(deployment) or 'nothing more is going to happen'}"
    if not stage and not deployment.spec.desired_revision.name:
        return why(deployment)
    types = [each.type for each in conditions_of(deployment)]
    is_kept = goal.name.lower() in map(str.lower, types)
    if stage == "ROLLOUT_COMPLETE" and goal.aspect is Aspect.CONDITION and types and not is_kept:
        kept = ", ".join(types)
        return f"stage is {stage}, and its rollout had no such condition; it has: {kept}"
    return ""


def _has_condition(goal: Goal, resource: Resource) -> bool:
    if not (_is_of_rollback(goal) or is_fresh(resource)):
        return False
    named = _find_named(goal, conditions_of(resource)) or _find_kept(goal, resource)
    if any(condition_status(each) == goal.value for each in named):
        return True
    if _is_of_rollout_end(goal) and _is_taken_back(resource):
        return _is_healthy(resource)
    stage = _LAST_CONDITIONS.get(goal.name.lower())
    is_last = isinstance(resource, v2.Deployment) and goal.value == "TRUE" and not named
    return is_last and stage == status_value(resource, "stage") and is_fresh(resource)


def _find_named(goal: Goal, conditions: Iterable[api.Condition]) -> list[api.Condition]:
    return [each for each in conditions if each.type.lower() == goal.name.lower()]


def _find_kept(goal: Goal, resource: Resource) -> list[api.Condition]:
    """Return what is kept of the rollout, or rollback, that made the stage."""
    if not isinstance(resource, v2.Deployment):
        return []
    makes = "ROLLBACK_COMPLETE" if _is_of_rollback(goal) else "ROLLOUT_COMPLETE"
    is_over = status_value(resource, "stage") == makes
    return _find_named(goal, resource.status.conditions_snapshot) if is_over else []


def _is_moving(deployment: v2.Deployment) -> bool:
    """Tell whether the status still speaks of another server, or of the time before a start.

    A start is recorded before its stage: until then the stage is an earlier rollout's.
    """
    annotations = deployment.metadata.annotations
    tried = annotations.get(CANDIDATE_SERVER, "") or annotations.get(PLACED_ON, "")
    started = annotations.get(STARTED_FOR, "")
    is_begun = started not in ("", annotations.get(FINISHED_FOR, ""))
    is_elsewhere = tried not in ("", deployment.spec.inference_server.name)
    return is_elsewhere or (is_begun and status_value(deployment, "stage") in _ENDS)


def _is_retry_waiting(deployment: v2.Deployment) -> bool:
    """Tell whether a failed revision is asked for again and that has not ended yet."""
    stage, status = status_value(deployment, "stage"), deployment.status
    is_undone = status.candidate_revision != status.current_revision or stage == "ROLLBACK_FAILED"
    failed = stage in _FAILED and is_undone
    return failed and is_retry_new(deployment.metadata.annotations)


def _is_over(goal: Goal, deployment: v2.Deployment) -> bool:
    """Tell whether the stage is one that cannot lead to the goal."""
    stage = status_value(deployment, "stage")
    if stage.startswith("CLEAN_UP"):
        return stage in _FINAL
    if goal.aspect is Aspect.STATE:
        # Once rolled back, the model that is still there may become healthy again by itself.
        return stage in _FINAL and not deployment.status.current_revision.name
    if _is_of_cleanup(goal) or (_is_of_rollout_end(goal) and _is_taken_back(deployment)):
        return False
    return stage in _FINAL or (stage == "ROLLOUT_FAILED" and not _is_of_rollback(goal))


def _is_of_cleanup(goal: Goal) -> bool:
    return goal.aspect is Aspect.STAGE and goal.value.startswith("CLEAN_UP")


def _is_of_rollout_end(goal: Goal) -> bool:
    is_stage = goal.aspect is Aspect.STAGE and goal.value == "ROLLOUT_COMPLETE"
    return is_stage or (goal.name.lower() == "rolloutcomplete" and goal.value == "TRUE")


def _is_taken_back(resource: Resource) -> bool:
    """Tell whether another model was undone and the one that is live is what is wanted.

    The stage is ROLLBACK_COMPLETE then, as the guide has it, and there is nothing to roll out: for
    whoever waits for the end of a rollout the wish is fulfilled.
    """
    if not isinstance(resource, v2.Deployment) or not is_fresh(resource):
        return False
    wanted, status = resource.spec.desired_revision, resource.status
    is_live = bool(wanted.name) and wanted == status.candidate_revision == status.current_revision
    return is_live and status_value(resource, "stage") == "ROLLBACK_COMPLETE"


def _is_healthy(resource: Resource) -> bool:
    return status_value(resource, "state") == "HEALTHY"


def _is_of_rollback(goal: Goal) -> bool:
    return goal.value in _ROLLBACK or goal.name.startswith("Rollback")
