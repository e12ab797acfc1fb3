"""Changing one condition: status, reason, message, time and progress record.

Tokens go to `reason`, sentences to `message` (extension guide, section 1). The timestamp (unix
seconds) moves only when status, reason or message changed.
"""

import json
from collections.abc import Iterable, MutableSequence
from dataclasses import dataclass

from maserve.wire import api, wkt

TRUE = api.CONDITION_STATUS_TRUE
FALSE = api.CONDITION_STATUS_FALSE
UNKNOWN = api.CONDITION_STATUS_UNKNOWN

KILL_REASON = "killed due to workflow termination"
"""The reason of a FALSE condition that makes the engine's result `killed`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What a step must remember across passes and restarts (unix seconds, 0 = not yet).

    `replica` is the chosen canary replica, `source` the storage path a rollout works with. A step
    that counts time (a soak) was last looked at at `seen_at`, has been well for `passed_s` without
    a break and not well for `missed_s` in all; `held` tells that it was not well then. Kept in the
    condition's metadata (behaviour 5.8).
    """

    started_at: float = 0.0
    completed_at: float = 0.0
    done: bool = False
    replica: str = ""
    seen_at: float = 0.0
    passed_s: float = 0.0
    missed_s: float = 0.0
    held: bool = False
    source: str = ""


def true_condition(
    previous: api.Condition, now_s: float, *, message: str = "", reason: str = ""
) -> api.Condition:
    """Make it TRUE; message and reason are cleared, unless there is something to tell."""
    return _set(previous, TRUE, message=message, reason=reason, now_s=now_s)


def unknown_condition(
    previous: api.Condition, message: str, reason: str, now_s: float
) -> api.Condition:
    """Make it UNKNOWN: in progress, look again."""
    return _set(previous, UNKNOWN, message=message, reason=reason, now_s=now_s)


def false_condition(
    previous: api.Condition, message: str, reason: str, now_s: float
) -> api.Condition:
    """Make it FALSE: failed, stop."""
    return _set(previous, FALSE, message=message, reason=reason, now_s=now_s)


def find_condition(conditions: Iterable[api.Condition], type_: str) -> api.Condition | None:
    """Return the condition of that type, None when there is none."""
    return next((condition for condition in conditions if condition.type == type_), None)


def first_unmet(conditions: Iterable[api.Condition]) -> api.Condition | None:
    """Return the first condition that is not TRUE, None when all are."""
    return next((condition for condition in conditions if condition.status != TRUE), None)


def read_progress(condition: api.Condition) -> Progress:
    """Return the step's record; a missing or foreign one is an empty record.

    An Any of BoolValue, written by older controllers, counts as done when true.
    """
    metadata = condition.metadata
    if metadata.type_url.endswith("google.protobuf.BoolValue"):
        flag = wkt.BoolValue()
        metadata.Unpack(flag)
        return Progress(done=flag.value)
    text = wkt.StringValue()
    if not metadata.type_url or not metadata.Unpack(text):
        return Progress()
    return _parse_progress(text.value)


def write_progress(condition: api.Condition, progress: Progress) -> None:
    """Store the step's record in `condition`, which must be the caller's own copy."""
    if progress == read_progress(condition) and condition.metadata.type_url:
        return
    row = {
        "startedAt": progress.started_at,
        "done": progress.done,
        "completedAt": progress.completed_at,
        "replica": progress.replica,
        "seenAt": progress.seen_at,
        "passedSeconds": progress.passed_s,
        "missedSeconds": progress.missed_s,
        "held": progress.held,
        "source": progress.source,
    }
    text = json.dumps({name: value for name, value in row.items() if value}, sort_keys=True)
    condition.metadata.Pack(wkt.StringValue(value=text))


def put_condition(conditions: MutableSequence[api.Condition], condition: api.Condition) -> None:
    """Replace the condition of the same type in place, or append.

    `conditions` is a message's field.
    """
    found = find_condition(conditions, condition.type)
    if found is None:
        conditions.append(condition)
    elif found is not condition:
        found.CopyFrom(condition)


def _set(
    previous: api.Condition,
    status: api.ConditionStatus,
    *,
    message: str,
    reason: str,
    now_s: float,
) -> api.Condition:
    wanted = (status, message, reason)
    if (previous.status, previous.message, previous.reason) != wanted:
        previous.status, previous.message, previous.reason = wanted
        previous.last_updated_timestamp = int(now_s)
    elif not previous.last_updated_timestamp:
        previous.last_updated_timestamp = int(now_s)
    return previous


def _parse_progress(text: str) -> Progress:
    try:
        row = json.loads(text)
        return Progress(
            started_at=float(row.get("startedAt", 0)),
            completed_at=float(row.get("completedAt", 0)),
            done=bool(row.get("done", False)),
            replica=str(row.get("replica", "")),
            seen_at=float(row.get("seenAt", 0)),
            passed_s=float(row.get("passedSeconds", 0)),
            missed_s=float(row.get("missedSeconds", 0)),
            held=bool(row.get("held", False)),
            source=str(row.get("source", "")),
        )
    except (ValueError, TypeError, AttributeError):
        return Progress()
