"""Reading any resource for people: short enum names, conditions, ages, what it waits for."""

from collections.abc import Sequence
from datetime import datetime

from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor

from maserve.resource import Resource, is_deleting, kind_of
from maserve.resource.annotations import PLACED_ON
from maserve.wire import api, v2

_STEPS = (("s", 1, 120), ("m", 60, 7200), ("h", 3600, 172800))


def short(enum: EnumDescriptor, number: int) -> str:
    """Return an enum value without its prefix (`ROLLOUT_COMPLETE`); the zero value is empty."""
    if number == 0:
        return ""
    value = enum.values_by_number.get(number)
    return str(number) if value is None else value.name.removeprefix(prefix(enum))


def prefix(enum: EnumDescriptor) -> str:
    """Return what all value names of an enum begin with: `DEPLOYMENT_STAGE_`."""
    zero = enum.values_by_number[0].name
    return zero.removesuffix("INVALID").removesuffix("UNKNOWN").removesuffix("UNSPECIFIED")


def status_enum(kind: type[Resource], name: str) -> EnumDescriptor | None:
    """Return the enum of the status field `name`, None when the kind has no such field."""
    status: FieldDescriptor = kind.DESCRIPTOR.fields_by_name["status"]
    message = status.message_type
    field = None if message is None else message.fields_by_name.get(name)
    return None if field is None else field.enum_type


def status_value(resource: Resource, name: str) -> str:
    """Return the status enum `name` in short, empty when it is unset or the kind has none."""
    enum = status_enum(type(resource), name)
    return "" if enum is None else short(enum, getattr(resource.status, name))


def conditions_of(resource: Resource) -> Sequence[api.Condition]:
    """Return the conditions, whichever of the two field names the kind has; in their order."""
    for name in ("conditions", "status_conditions"):
        if name in resource.status.DESCRIPTOR.fields_by_name:
            return tuple(getattr(resource.status, name))
    return ()


def condition_status(condition: api.Condition) -> str:
    return ("UNKNOWN", "TRUE", "FALSE")[condition.status]


def blocker(conditions: Sequence[api.Condition]) -> api.Condition | None:
    """Return what holds the object up: the first failed condition, else the first unknown one."""
    for status in (api.CONDITION_STATUS_FALSE, api.CONDITION_STATUS_UNKNOWN):
        found = next((each for each in conditions if each.status == status), None)
        if found is not None:
            return found
    return None


def why(resource: Resource) -> str:
    """Say in one line why the object is where it is; empty when there is nothing to say."""
    held = blocker(conditions_of(resource))
    parts = []
    if is_deleting(resource):
        parts.append("is being deleted")
    if isinstance(resource, v2.Deployment) and resource.status.message:
        parts.append(resource.status.message)
    if held is not None and not (held.message and held.message in " ".join(parts)):
        parts.append(told(held))
    if not parts and isinstance(resource, v2.Deployment):
        return _why_idle(resource)
    return "; ".join(dict.fromkeys(parts))


def _why_idle(deployment: v2.Deployment) -> str:
    wanted, status = deployment.spec.desired_revision, deployment.status
    if not wanted.name:
        return "spec.desiredRevision names no Model, so there is nothing to roll out"
    is_live = wanted == status.candidate_revision == status.current_revision
    if is_live and status.stage == v2.DEPLOYMENT_STAGE_ROLLBACK_COMPLETE:
        return f"{wanted.name} is live since the rollback, so there is nothing to roll out"
    return ""


def told(condition: api.Condition) -> str:
    """Return a condition as one phrase: `RolloutComplete UNKNOWN CompletionTasksPending: …`."""
    words = [condition.type, condition_status(condition), condition.reason]
    head = " ".join(word for word in words if word)
    return f"{head}: {condition.message}" if condition.message else head


def progress(resource: Resource) -> str:
    """Return stage or state and what is missing, for one line of progress."""
    where = status_value(resource, "stage") or status_value(resource, "state") or "no status yet"
    reason = why(resource)
    return f"{where}  {reason}" if reason else where


def title(resource: Resource) -> str:
    """Return how the object is called in messages: `Deployment default/digits`."""
    meta = resource.metadata
    return f"{kind_of(resource).name} {meta.namespace}/{meta.name}"


def age(seconds: int, now: datetime) -> str:
    """Return how long ago `seconds` (unix) was: `95s`, `95m`, `30h`, `4d`; `-` when it is unset."""
    if seconds <= 0:
        return "-"
    passed = max(0, int(now.timestamp()) - seconds)
    for unit, size, limit in _STEPS:
        if passed < limit:
            return f"{passed // size}{unit}"
    return f"{passed // 86400}d"


def serving_server(deployment: v2.Deployment) -> str:
    """Return the InferenceServer through which a Deployment answers: while it moves, the old one.

    Before it is placed, the one that the spec names.
    """
    placed = deployment.metadata.annotations.get(PLACED_ON, "")
    return placed or deployment.spec.inference_server.name
