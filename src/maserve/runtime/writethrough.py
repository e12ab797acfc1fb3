"""A store whose answers reach the informers at once, ahead of the watch."""

from collections.abc import AsyncIterator, Iterable
from typing import Any

from maserve.base.keys import Key
from maserve.resource.kinds import R
from maserve.resource.metadata import clone
from maserve.runtime.informer import Informer
from maserve.store import Change, Page, Preconditions, Selection, Store


class WriteThroughStore:
    """Passes everything on to a store, and every state it answers with to the kind's informer.

    So no pass that follows an own write reads a state from before that write.
    """

    def __init__(self, store: Store, informers: Iterable[Informer[Any]]) -> None:
        self._store = store
        self._informers = {informer.kind: informer for informer in informers}

    async def create(self, resource: R, *, dry_run: bool = False) -> R:
        created = await self._store.create(resource, dry_run=dry_run)
        return created if dry_run else self._observe(created)

    async def get(self, kind: type[R], key: Key) -> R:
        return self._observe(await self._store.get(kind, key))

    async def find(self, kind: type[R], key: Key) -> R | None:
        found = await self._store.find(kind, key)
        return None if found is None else self._observe(found)

    async def list(self, kind: type[R], selection: Selection | None = None) -> Page[R]:
        return await self._store.list(kind, selection)

    async def update(self, resource: R, *, dry_run: bool = False) -> R:
        updated = await self._store.update(resource, dry_run=dry_run)
        return updated if dry_run else self._observe(updated)

    async def update_status(self, resource: R) -> R:
        return self._observe(await self._store.update_status(resource))

    async def delete(
        self,
        kind: type[R],
        key: Key,
        *,
        preconditions: Preconditions | None = None,
        dry_run: bool = False,
    ) -> None:
        await self._store.delete(kind, key, preconditions=preconditions, dry_run=dry_run)

    def watch(self, kind: type[R], *, since: str = "") -> AsyncIterator[Change[R]]:
        return self._store.watch(kind, since=since)

    def _observe(self, resource: R) -> R:
        informer = self._informers.get(type(resource))
        if informer is not None:
            informer.observe(clone(resource))
        return resource
