"""Watches: reading history as it grows."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

from maserve.resource import R, key_of
from maserve.store.paging import Query, parse_version
from maserve.store.protocol import Change, ChangeType, Page
from maserve.store.sqlite.database import Database
from maserve.store.sqlite.views import Batch, read_changes, read_page

_PAGE = 256
"""Objects of the initial list read at once; all pages are of the first one's version."""


async def follow(
    database: Database, kind: type[R], *, since: str, bell: asyncio.Event
) -> AsyncIterator[Change[R]]:
    """Yield what `Store.watch` promises; `bell` must ring after every commit that touches `kind`.

    Nothing is queued for a reader: it holds a position in the history, and a slow one reads on
    from there.
    """
    version = since
    if not version:
        query = Query(kind=kind, limit=_PAGE)
        while True:
            page = await _read_page(database, query)
            for item in page.items:
                read_at = item.metadata.resourceVersion
                yield Change(type=ChangeType.ADDED, object=item, version=read_at)
            version = page.version
            if not page.next:
                break
            query = replace(query, version=int(version), after=key_of(page.items[-1]))
        yield Change(type=ChangeType.SYNCED, object=None, version=version)
    cursor = parse_version(version)
    while True:
        bell.clear()  # before the read: a commit during it rings again
        batch = await _read_changes(database, kind, cursor)
        for change in batch.changes:
            yield change
        cursor = batch.upto
        if batch.is_last:
            await bell.wait()


async def _read_page(database: Database, query: Query[R]) -> Page[R]:
    return await database.read(lambda view: read_page(view.connection, query))


async def _read_changes(database: Database, kind: type[R], since: int) -> Batch[R]:
    return await database.read(lambda view: read_changes(view.connection, kind, since))
