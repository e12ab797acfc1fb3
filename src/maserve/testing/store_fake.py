"""A `Store` in memory, on the event loop alone: for virtual time and for faults on order."""

import asyncio
import random
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar
from weakref import WeakSet

from maserve.base.clock import Clock
from maserve.base.errors import Error, Expired, NotFound
from maserve.base.keys import Key
from maserve.resource import R, Resource, clone, key_of, kind_of
from maserve.store import Change, ChangeType, Page, Preconditions, Selection
from maserve.store.paging import Query, parse_query, parse_version
from maserve.store.shelf import Writer

T = TypeVar("T")

_Place = tuple[str, Key]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreCall:
    """One call the store got; `name` is empty for lists and watches."""

    verb: str
    kind: str
    namespace: str = ""
    name: str = ""

    def __deepcopy__(self, _memo: dict[int, Any]) -> Self:
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """One step of history; `before` is None for a new object. Neither is ever changed in place."""

    version: int
    place: _Place
    type: ChangeType
    before: Resource | None
    after: Resource

    def __deepcopy__(self, _memo: dict[int, Any]) -> Self:
        return self


@dataclass(slots=True)
class _MemoryShelf:
    """`store.shelf.Shelf` over dictionaries."""

    history_changes: int
    head: int = 0
    objects: dict[_Place, Resource] = field(default_factory=dict)
    history: list[_Step] = field(default_factory=list)
    trimmed: dict[str, int] = field(default_factory=dict)

    def find(self, kind: type[R], key: Key) -> R | None:
        found = self.objects.get((kind.DESCRIPTOR.name, key))
        return clone(found) if isinstance(found, kind) else None

    def put(self, resource: Resource, *, is_new: bool) -> None:
        step = ChangeType.ADDED if is_new else ChangeType.MODIFIED
        before = self._remember(resource, step)
        self.objects[before] = clone(resource)

    def remove(self, resource: Resource) -> None:
        del self.objects[self._remember(resource, ChangeType.DELETED)]

    def list_dependents(self, namespace: str, uid: str) -> tuple[tuple[type[Resource], Key], ...]:
        places = sorted(
            place
            for place, each in self.objects.items()
            if each.metadata.namespace == namespace
            and any(owner.uid == uid for owner in each.metadata.ownerReferences)
        )
        return tuple((type(self.objects[place]), place[1]) for place in places)

    def has_uid(self, namespace: str, uid: str) -> bool:
        return any(
            each.metadata.uid == uid and each.metadata.namespace == namespace
            for each in self.objects.values()
        )

    def list_at(self, query: Query[R], version: int) -> Iterator[R]:
        """Yield the objects after the query's cursor as they were at `version`, in order."""
        states: dict[_Place, Resource | None] = dict(self.objects)
        for step in reversed(self.history):
            if step.version > version:
                states[step.place] = step.before
        for place in sorted(states):
            state = states[place]
            is_wanted = place[1] > query.after and query.namespace in {"", place[1].namespace}
            if is_wanted and isinstance(state, query.kind):
                yield state

    def check_history(self, kind: str, version: int) -> None:
        if not self.trimmed.get(kind, 0) <= version <= self.head:
            raise Expired(f"version {version} of {kind} is not in the history; list again")

    def _remember(self, resource: Resource, step: ChangeType) -> _Place:
        self.head += 1
        resource.metadata.resourceVersion = str(self.head)
        place = (kind_of(resource).name, key_of(resource))
        before = self.objects.get(place)
        after = clone(resource)
        self.history.append(
            _Step(version=self.head, place=place, type=step, before=before, after=after)
        )
        while len(self.history) > self.history_changes:
            dropped = self.history.pop(0)
            self.trimmed[dropped.place[0]] = dropped.version
        return place


class FakeStore:
    """Keeps every rule of `Store`; nothing survives it.

    `calls` lists what was asked, in order. `fail_next` makes the next call fail before it does
    anything, `lose_next` after it was done: the write is there, the answer is an error.
    """

    def __init__(
        self, *, clock: Clock, rng: random.Random | None = None, history_changes: int = 10_000
    ) -> None:
        self.calls: list[StoreCall] = []
        self._shelf = _MemoryShelf(history_changes)
        self._writer = Writer(shelf=self._shelf, clock=clock, rng=rng or random.Random(0))  # noqa: S311 - ids
        self._bells: WeakSet[asyncio.Event] = WeakSet()
        self._failures: list[tuple[str, Error]] = []
        self._losses: list[tuple[str, Error]] = []

    def __getstate__(self) -> dict[str, Any]:
        # Watchers are no part of a copy.
        return {**vars(self), "_bells": WeakSet()}

    @property
    def version(self) -> int:
        """The number of writes so far."""
        return self._shelf.head

    def peek_all(self, kind: type[R]) -> tuple[R, ...]:
        """Return every object of a kind, by key, without a call of the port."""
        found = sorted(self._shelf.objects.items(), key=lambda item: item[0][1])
        return tuple(clone(each) for _, each in found if isinstance(each, kind))

    def fail_next(self, error: Error, *, verb: str = "") -> None:
        """Raise `error` from the next call, or the next call of `verb`, instead of doing it."""
        self._failures.append((verb, error))

    def lose_next(self, error: Error, *, verb: str = "") -> None:
        """Raise `error` from the next write, or the next write of `verb`, after doing it."""
        self._losses.append((verb, error))

    async def create(self, resource: R, *, dry_run: bool = False) -> R:
        self._begin("create", kind_of(resource).name, key_of(resource))
        return self._end("create", self._writer.create(resource, dry_run=dry_run))

    async def get(self, kind: type[R], key: Key) -> R:
        self._begin("get", kind.DESCRIPTOR.name, key)
        found = self._shelf.find(kind, key)
        if found is None:
            raise NotFound(kind.DESCRIPTOR.name, key)
        return found

    async def find(self, kind: type[R], key: Key) -> R | None:
        self._begin("find", kind.DESCRIPTOR.name, key)
        return self._shelf.find(kind, key)

    async def list(self, kind: type[R], selection: Selection | None = None) -> Page[R]:
        chosen = selection or Selection()
        self._begin("list", kind.DESCRIPTOR.name, Key(chosen.namespace, ""))
        query = parse_query(kind, chosen)
        version = self._shelf.head if query.version is None else query.version
        self._shelf.check_history(kind.DESCRIPTOR.name, version)
        return query.page(self._shelf.list_at(query, version), version=version, decode=clone)

    async def update(self, resource: R, *, dry_run: bool = False) -> R:
        self._begin("update", kind_of(resource).name, key_of(resource))
        return self._end("update", self._writer.update(resource, dry_run=dry_run))

    async def update_status(self, resource: R) -> R:
        self._begin("update_status", kind_of(resource).name, key_of(resource))
        return self._end("update_status", self._writer.update_status(resource))

    async def delete(
        self,
        kind: type[R],
        key: Key,
        *,
        preconditions: Preconditions | None = None,
        dry_run: bool = False,
    ) -> None:
        self._begin("delete", kind.DESCRIPTOR.name, key)
        self._writer.delete(kind, key, preconditions=preconditions, dry_run=dry_run)
        self._end("delete", None)

    async def watch(self, kind: type[R], *, since: str = "") -> AsyncIterator[Change[R]]:
        self._begin("watch", kind.DESCRIPTOR.name, Key("", ""))
        bell = asyncio.Event()
        self._bells.add(bell)
        cursor = parse_version(since or str(self._shelf.head))
        if not since:
            for item in tuple(self._shelf.list_at(Query(kind=kind), cursor)):
                version = item.metadata.resourceVersion
                yield Change(type=ChangeType.ADDED, object=clone(item), version=version)
            yield Change(type=ChangeType.SYNCED, object=None, version=str(cursor))
        while True:
            bell.clear()
            self._shelf.check_history(kind.DESCRIPTOR.name, cursor)
            for step in tuple(each for each in self._shelf.history if each.version > cursor):
                if isinstance(step.after, kind):
                    state, version = clone(step.after), str(step.version)
                    yield Change(type=step.type, object=state, version=version)
                cursor = step.version
            if cursor == self._shelf.head:
                await bell.wait()

    def _begin(self, verb: str, kind: str, key: Key) -> None:
        call = StoreCall(verb=verb, kind=kind, namespace=key.namespace, name=key.name)
        self.calls.append(call)
        _raise_first(self._failures, verb)

    def _end(self, verb: str, answer: T) -> T:
        for bell in tuple(self._bells):
            bell.set()
        _raise_first(self._losses, verb)
        return answer


def _raise_first(planned: list[tuple[str, Error]], verb: str) -> None:
    """Raise the first error planned for `verb`, once."""
    for entry in planned:
        if entry[0] in {"", verb}:
            planned.remove(entry)
            raise entry[1]
