"""A cache of all objects of one kind, kept warm by a watch."""

import asyncio
import random
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

import structlog

from maserve.base.backoff import Backoff
from maserve.base.clock import Clock
from maserve.base.errors import Error, Expired, NotFound
from maserve.base.keys import Key
from maserve.resource.kinds import R
from maserve.resource.metadata import key_of
from maserve.runtime.cache import Cache, Index, Transition
from maserve.store import Change, ChangeType, Store

V = TypeVar("V", bound=Hashable)

Handler = Callable[[Transition[R]], None]

WATCH_BACKOFF = Backoff(initial_s=0.05, limit_s=15.0, jitter=0.2)

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class InformerSettings:
    """How an informer works.

    Every `resync_s` the handlers see every object again, so that a lost event is only a delay. A
    broken watch is started again after `backoff`.
    """

    resync_s: float = 600.0
    backoff: Backoff = WATCH_BACKOFF


class Informer(Generic[R]):
    """Objects of one kind as a watch reports them, and as own writes left them (`observe`).

    Objects handed out are shared: clone before changing. Handlers are called on the loop's thread,
    must not block and must not raise.

    **Invariant:** no reader sees an object older than one it saw or observed before.
    """

    def __init__(
        self,
        kind: type[R],
        store: Store,
        *,
        clock: Clock,
        rng: random.Random,
        settings: InformerSettings,
    ) -> None:
        self.kind = kind
        self._store = store
        self._clock = clock
        self._rng = rng
        self._settings = settings
        self._cache: Cache[R] = Cache()
        self._handlers: list[Handler[R]] = []
        self._since = ""
        self._listed: set[Key] | None = None
        self._synced = asyncio.Event()
        self._name = str(kind.DESCRIPTOR.name)
        self._log = _log.bind(kind=self._name)

    @property
    def is_synced(self) -> bool:
        """True once every object that existed at the start is here."""
        return self._synced.is_set()

    async def wait_synced(self) -> None:
        await self._synced.wait()

    def find(self, key: Key) -> R | None:
        """Return the object, None when there is none."""
        return self._cache.find(key)

    def get(self, key: Key) -> R:
        """Return the object. Raises `NotFound`."""
        found = self._cache.find(key)
        if found is None:
            raise NotFound(self._name, key)
        return found

    def list(self, namespace: str = "") -> tuple[R, ...]:
        """Return the objects of one namespace, or of all, by namespace and name."""
        return self._cache.list(namespace)

    def index(self, values: Callable[[R], Iterable[V]]) -> Index[V, R]:
        """Return a look-up of objects by what `values` says of them, kept up to date."""
        return self._cache.index(values)

    def subscribe(self, handler: Handler[R]) -> Callable[[], None]:
        """Call `handler` for every object there is, then for every change; returns the way out."""
        self._handlers.append(handler)
        for resource in self._cache.list():
            handler(Transition(old=None, new=resource))

        def unsubscribe() -> None:
            if handler in self._handlers:
                self._handlers.remove(handler)

        return unsubscribe

    def observe(self, resource: R) -> None:
        """Take over what an own write returned, if it is newer than what is here."""
        self._tell(self._cache.observe(resource))

    async def run(self) -> None:
        """Watch until cancelled; an error of the store starts the watch again after a backoff."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._resync())
            group.create_task(self._keep_watching())

    async def _keep_watching(self) -> None:
        failures = 0
        while True:
            before = self._since
            try:
                async for change in self._store.watch(self.kind, since=self._since):
                    self._apply(change)
                error = "the watch ended"
            except Expired:
                self._since, error = "", "history expired"
            except Error as raised:
                error = str(raised)
            self._listed = None
            failures = failures + 1 if self._since in ("", before) else 1
            delay_s = self._settings.backoff.delay_s(failures, self._rng)
            self._log.warning("watch broke", error=error, attempt=failures, retry_s=delay_s)
            await self._clock.sleep(delay_s)

    def _apply(self, change: Change[R]) -> None:
        if change.object is None:
            self._finish_listing(change.version)
            return
        if change.type is ChangeType.DELETED:
            self._tell(self._cache.remove(change.object, change.version))
        else:
            self._note_listed(change.object)
            self._tell(self._cache.put(change.object))
        if self._since:
            self._since = change.version

    def _note_listed(self, resource: R) -> None:
        """Remember what a new listing holds: what it does not hold was deleted meanwhile."""
        if self._since:
            return
        if self._listed is None:
            self._listed = set()
        self._listed.add(key_of(resource))

    def _finish_listing(self, version: str) -> None:
        if not self._since:
            for transition in self._cache.retain(self._listed or set(), version):
                self._tell(transition)
        self._listed = None
        self._since = version
        self._synced.set()

    async def _resync(self) -> None:
        while True:
            await self._clock.sleep(self._settings.resync_s)
            for resource in self._cache.list():
                self._tell(Transition(old=resource, new=resource))

    def _tell(self, transition: Transition[R] | None) -> None:
        if transition is not None:
            for handler in tuple(self._handlers):
                handler(transition)
