"""`status.state` of a Deployment, and what its message says beside it (ADR 0021).

The table of states in the guide's concepts page says the same in words.
"""

from dataclasses import dataclass

from maserve.deployment.keys import candidate, current, desired, same_revision
from maserve.deployment.notes import Note
from maserve.deployment.stock.health import Grade, Health
from maserve.deployment.stock.ports import Ports
from maserve.deployment.stock.service import look_at_service
from maserve.wire import v2

_LEAVING = (v2.DEPLOYMENT_STAGE_CLEAN_UP_IN_PROGRESS, v2.DEPLOYMENT_STAGE_CLEAN_UP_FAILED)
_UNDONE = (v2.DEPLOYMENT_STAGE_ROLLBACK_COMPLETE, v2.DEPLOYMENT_STAGE_ROLLBACK_FAILED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A state with the note that the message gets; UNHEALTHY always has one."""

    state: v2.DeploymentState
    note: Note | None = None
    text: str = ""


async def find_standing(ports: Ports, deployment: v2.Deployment) -> Standing:
    """Return the state as it is now. Raises `Trouble` when nobody can tell."""
    stage = deployment.status.stage
    if deployment.spec.WhichOneof("target") != "inference_server":
        return Standing(state=v2.DEPLOYMENT_STATE_INVALID)
    if stage == v2.DEPLOYMENT_STAGE_CLEAN_UP_COMPLETE:
        return Standing(state=v2.DEPLOYMENT_STATE_EMPTY)
    if stage in _LEAVING:
        return _unhealthy("it is being removed")
    if current(deployment):
        return _standing_of(await look_at_service(ports, deployment))
    return _without_current(deployment)


def _without_current(deployment: v2.Deployment) -> Standing:
    """Judge before a rollout has completed: none wanted, one under way, or one that failed."""
    status = deployment.status
    is_wanted = desired(deployment) and not deployment.spec.deletion_spec.deleted
    if not is_wanted and not candidate(deployment):
        return Standing(state=v2.DEPLOYMENT_STATE_EMPTY)
    is_last = same_revision(deployment.spec.desired_revision, status.candidate_revision)
    if status.stage in _UNDONE and is_last:
        return _unhealthy("no model is live")
    return Standing(state=v2.DEPLOYMENT_STATE_INITIALIZING)


def _standing_of(health: Health) -> Standing:
    match health.grade:
        case Grade.OUT:
            return _unhealthy(health.text)
        case Grade.DEGRADED:
            return _healthy(Note.DEGRADED, health.text)
        case Grade.PROGRESSING:
            return _healthy(Note.PROGRESSING, health.text)
        case Grade.SERVING:
            return _healthy(None)


def _healthy(note: Note | None, text: str = "") -> Standing:
    return Standing(state=v2.DEPLOYMENT_STATE_HEALTHY, note=note, text=text)


def _unhealthy(text: str) -> Standing:
    return Standing(state=v2.DEPLOYMENT_STATE_UNHEALTHY, note=Note.UNHEALTHY, text=text)
