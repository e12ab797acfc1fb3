"""`Store` on one SQLite file."""

import asyncio
import random
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar
from weakref import WeakSet

from maserve.base.clock import Clock, SystemClock
from maserve.base.errors import NotFound
from maserve.base.keys import Key
from maserve.resource import R
from maserve.store.events import EventLog
from maserve.store.paging import parse_query
from maserve.store.protocol import Change, Page, Preconditions, Selection
from maserve.store.shelf import Writer
from maserve.store.sqlite.database import Database, Transaction
from maserve.store.sqlite.events import SqliteEventLog
from maserve.store.sqlite.objects import ObjectShelf, find_object
from maserve.store.sqlite.settings import StoreSettings
from maserve.store.sqlite.views import read_page
from maserve.store.sqlite.watch import follow

T = TypeVar("T")


class SqliteStore:
    """Resources as message bytes in one file, open between `async with`.

    `path` is the file, made if it is not there; its folder must be. Opening raises `Unusable` for
    a damaged, foreign or newer file. Uids come from `rng`. The data folder's lock, not this class,
    keeps a second process away.
    """

    def __init__(
        self,
        path: Path,
        *,
        clock: Clock | None = None,
        rng: random.Random | None = None,
        settings: StoreSettings | None = None,
    ) -> None:
        self._clock = clock or SystemClock()
        self._rng = rng or random.SystemRandom()
        self._settings = settings or StoreSettings()
        self._database = Database(path, settings=self._settings, on_commit=self._wake)
        self._events = SqliteEventLog(self._database, clock=self._clock, settings=self._settings)
        self._bells: defaultdict[str, WeakSet[asyncio.Event]] = defaultdict(WeakSet)
        self._exit = AsyncExitStack()

    @property
    def events(self) -> EventLog:
        """The event log in the same file."""
        return self._events

    async def __aenter__(self) -> Self:
        await self._exit.enter_async_context(self._database)
        await self._collect_orphans()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._exit.aclose()
        self._wake(frozenset(self._bells))

    async def create(self, resource: R, *, dry_run: bool = False) -> R:
        return await self._write(lambda writer: writer.create(resource, dry_run=dry_run))

    async def get(self, kind: type[R], key: Key) -> R:
        found = await self.find(kind, key)
        if found is None:
            raise NotFound(kind.DESCRIPTOR.name, key)
        return found

    async def find(self, kind: type[R], key: Key) -> R | None:
        return await self._database.read(lambda view: find_object(view.connection, kind, key))

    async def list(self, kind: type[R], selection: Selection | None = None) -> Page[R]:
        query = parse_query(kind, selection or Selection())
        return await self._database.read(lambda view: read_page(view.connection, query))

    async def update(self, resource: R, *, dry_run: bool = False) -> R:
        return await self._write(lambda writer: writer.update(resource, dry_run=dry_run))

    async def update_status(self, resource: R) -> R:
        return await self._write(lambda writer: writer.update_status(resource))

    async def delete(
        self,
        kind: type[R],
        key: Key,
        *,
        preconditions: Preconditions | None = None,
        dry_run: bool = False,
    ) -> None:
        def work(writer: Writer) -> None:
            writer.delete(kind, key, preconditions=preconditions, dry_run=dry_run)

        await self._write(work)

    def watch(self, kind: type[R], *, since: str = "") -> AsyncIterator[Change[R]]:
        bell = asyncio.Event()
        self._bells[kind.DESCRIPTOR.name].add(bell)
        return follow(self._database, kind, since=since, bell=bell)

    async def _write(self, work: Callable[[Writer], T]) -> T:
        def on_shelf(transaction: Transaction) -> T:
            shelf = ObjectShelf(transaction, self._settings)
            return work(Writer(shelf=shelf, clock=self._clock, rng=self._rng))

        return await self._database.write(on_shelf)

    async def _collect_orphans(self) -> None:
        # Every write collects in its own transaction; this is for files that came from elsewhere.
        def sweep(transaction: Transaction) -> None:
            shelf = ObjectShelf(transaction, self._settings)
            writer = Writer(shelf=shelf, clock=self._clock, rng=self._rng)
            for kind, key in shelf.list_orphans():
                writer.collect(kind, key)

        await self._database.write(sweep)

    def _wake(self, kinds: frozenset[str]) -> None:
        for kind in kinds:
            for bell in tuple(self._bells[kind]):
                bell.set()
