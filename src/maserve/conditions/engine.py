"""Drives an ordered list of condition actors through one pass.

Source: extension guide, section 1, "How the engine runs actors" and its outcome table.
"""

from dataclasses import dataclass
from typing import TypeVar

import structlog
from google.protobuf.message import Message

from maserve.base.errors import Error
from maserve.conditions.protocol import ConditionActor, Plugin, Timed
from maserve.conditions.status import (
    FALSE,
    KILL_REASON,
    TRUE,
    UNKNOWN,
    find_condition,
)
from maserve.wire import api

T = TypeVar("T", bound=Message)

_log = structlog.get_logger(__name__)

REQUEUE_S = 10.0
"""The upper bound until another look at a step in progress (extension guide, outcome table)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """How a pass ended.

    `moved` tells that a condition's status, reason or record changed: another look at once pays.
    `requeue_s` is when to look again at the latest, None when nothing asks for it. `error` is what
    an actor raised, as text.
    """

    satisfied: bool = False
    terminal: bool = False
    killed: bool = False
    moved: bool = False
    requeue_s: float | None = None
    error: str = ""


async def run_engine(plugin: Plugin[T], resource: T) -> Result:
    """Make one pass over the plugin's actors.

    Conditions are put into `resource`, the caller's own copy.

    Retrieve is called for every actor, Run for the first one that is not TRUE and for no other.
    """
    before = {c.type: _essence(c) for c in plugin.conditions(resource)}
    acting: tuple[ConditionActor[T], api.Condition] | None = None
    for actor in plugin.actors:
        try:
            condition = await actor.retrieve(resource, _previous(plugin, resource, actor.type))
            if acting is None and condition.status != TRUE:
                condition = await actor.run(resource, condition)
                acting = (actor, condition)
        except Error as error:
            _log.error("condition actor failed", condition=actor.type, error=str(error))
            return Result(terminal=True, error=f"{actor.type}: {error}", moved=True)
        condition.type = actor.type
        _keep_time(condition, find_condition(plugin.conditions(resource), actor.type))
        plugin.put_condition(resource, condition)
    after = {c.type: _essence(c) for c in plugin.conditions(resource)}
    if acting is None:
        return Result(satisfied=True, terminal=True, moved=before != after)
    return _in_progress(resource, *acting, moved=before != after)


def _in_progress(
    resource: T, actor: ConditionActor[T], condition: api.Condition, *, moved: bool
) -> Result:
    if condition.status == FALSE:
        killed = condition.reason == KILL_REASON
        return Result(terminal=True, killed=killed, moved=moved)
    due = actor.due_in_s(resource, condition) if isinstance(actor, Timed) else None
    requeue = REQUEUE_S if due is None else min(REQUEUE_S, max(0.0, due))
    return Result(moved=moved, requeue_s=requeue)


def _previous(plugin: Plugin[T], resource: T, type_: str) -> api.Condition:
    """Return the actor's own copy of its last condition, or a fresh UNKNOWN one."""
    fresh = api.Condition(type=type_, status=UNKNOWN)
    found = find_condition(plugin.conditions(resource), type_)
    if found is not None:
        fresh.CopyFrom(found)
    return fresh


def _keep_time(condition: api.Condition, before: api.Condition | None) -> None:
    """Leave the time of the last change to a condition that ends the pass as it began it.

    Retrieve and Run may each have set it: what one says in between has changed nothing.
    """
    if before is not None and _said(condition) == _said(before):
        condition.last_updated_timestamp = before.last_updated_timestamp


def _said(condition: api.Condition) -> tuple[int, str, str]:
    return condition.status, condition.reason, condition.message


def _essence(condition: api.Condition) -> tuple[int, str, bytes]:
    """Return what counts as movement; a message that only tells elapsed time does not."""
    return condition.status, condition.reason, condition.metadata.value
