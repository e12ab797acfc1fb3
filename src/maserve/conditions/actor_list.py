"""The usual plugin: a fixed list of actors over `status.conditions`."""

from collections.abc import Iterable, Sequence
from typing import Generic, TypeVar

from maserve.conditions.protocol import ConditionActor
from maserve.conditions.status import put_condition
from maserve.wire import api, v2

T = TypeVar("T", v2.InferenceServer, v2.Deployment)


class ActorList(Generic[T]):
    """Ordered actors of one kind of resource. Raises ValueError when two share a type."""

    def __init__(self, actors: Iterable[ConditionActor[T]]) -> None:
        self._actors: tuple[ConditionActor[T], ...] = tuple(actors)
        types = [actor.type for actor in self._actors]
        if len(set(types)) != len(types):
            raise ValueError(f"two condition actors share a type: {types}")

    @property
    def actors(self) -> Sequence[ConditionActor[T]]:
        return self._actors

    def conditions(self, resource: T) -> Sequence[api.Condition]:
        return resource.status.conditions

    def put_condition(self, resource: T, condition: api.Condition) -> None:
        put_condition(resource.status.conditions, condition)


def keep_conditions(resource: T, kept: Iterable[str]) -> None:
    """Keep the conditions of the types in `kept`, in that order, and drop all others.

    Changes `resource`, the caller's own copy.
    """
    by_type = {condition.type: condition for condition in resource.status.conditions}
    wanted = [by_type[type_] for type_ in kept if type_ in by_type]
    if wanted != list(resource.status.conditions):
        copies = [api.Condition.FromString(condition.SerializeToString()) for condition in wanted]
        del resource.status.conditions[:]
        resource.status.conditions.extend(copies)
