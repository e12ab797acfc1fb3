"""Driving one actor, and saying what its condition should be."""

from typing import TypeVar

from maserve.conditions import ActorList, ConditionActor, find_condition, run_engine
from maserve.wire import api, v2

T = TypeVar("T", v2.InferenceServer, v2.Deployment)


async def look(actor: ConditionActor[T], resource: T) -> api.Condition:
    """Return what the actor's Retrieve says now; the resource keeps its conditions."""
    previous = api.Condition(type=actor.type)
    found = find_condition(resource.status.conditions, actor.type)
    if found is not None:
        previous.CopyFrom(found)
    return await actor.retrieve(resource, previous)


async def act(actor: ConditionActor[T], resource: T) -> api.Condition:
    """Make one engine pass over the actor alone; return the condition it left."""
    await run_engine(ActorList[T]([actor]), resource)
    found = find_condition(resource.status.conditions, actor.type)
    if found is None:
        raise AssertionError(f"{actor.type} left no condition: it raised")
    return found


def expect_condition(
    condition: api.Condition, status: api.ConditionStatus, reason: str = "", says: str = ""
) -> None:
    """Fail unless status and reason are as given and the message contains `says`."""
    name = api.ConditionStatus.Name
    seen = (name(condition.status), condition.reason, condition.message)
    assert condition.status == status, f"expected {name(status)}, saw {seen}"  # noqa: S101
    assert condition.reason == reason, f"expected reason {reason!r}, saw {seen}"  # noqa: S101
    assert says in condition.message, f"expected {says!r} in the message of {seen}"  # noqa: S101
