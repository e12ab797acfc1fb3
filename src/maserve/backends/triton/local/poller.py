"""Reads one replica's repository index again and again, for everybody who wants to know.

And, in the same breath, what model-sync has written beside it.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from maserve.backends.triton.index import IndexRow, is_moving, parse_index
from maserve.backends.triton.local.syncstatus import SyncStatus
from maserve.backends.triton.settings import EmbeddedSettings
from maserve.base.clock import Clock
from maserve.base.errors import Unavailable
from maserve.host import HttpClient

QUIET_SHARE = 0.02
"""While something moves, the next look comes after this share of the time since the last change:
loads that take minutes are not asked for 20 times a second, and are noticed 2 % late at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One reading. `number` counts readings as they begin; `error` is empty when it worked.

    `sync` is None while model-sync has not said anything.
    """

    number: int
    begun_s: float
    rows: tuple[IndexRow, ...] = ()
    error: str = ""
    sync: SyncStatus | None = None

    def content(self) -> object:
        """Return what differs when something has changed."""
        return self.rows, self.error, self.sync

    def is_moving(self) -> bool:
        """Tell whether some model is on its way in or out."""
        return is_moving(self.rows) or (self.sync is not None and self.sync.is_moving())


class IndexPoller:
    """Polls while `run` runs. `on_snapshot` judges each reading; True: the replica is ready.

    `read_sync` reads model-sync's file.
    """

    def __init__(
        self,
        url: str,
        *,
        http: HttpClient,
        clock: Clock,
        settings: EmbeddedSettings,
        timeout_s: float,
        read_sync: Callable[[], SyncStatus | None],
        on_snapshot: Callable[[Snapshot], Awaitable[bool]],
    ) -> None:
        self._url = url
        self._http = http
        self._clock = clock
        self._settings = settings
        self._timeout_s = timeout_s
        self._read_sync = read_sync
        self._on_snapshot = on_snapshot
        self._begun = 0
        self._not_before = 0
        self._fast_until_s = 0.0
        self._changed_s = clock.monotonic()
        self._wake = asyncio.Event()
        self._news = asyncio.Event()
        self.latest: Snapshot | None = None

    async def run(self) -> None:
        """Poll until cancelled."""
        while True:
            self._wake.clear()
            snapshot = await self._read()
            if self.latest is None or snapshot.content() != self.latest.content():
                self._changed_s = self._clock.monotonic()
            self.latest = snapshot
            ready = await self._on_snapshot(snapshot)
            news, self._news = self._news, asyncio.Event()
            news.set()
            await self._pause(self._period_s(snapshot, ready=ready))

    def invalidate(self) -> None:
        """Make every reading that has begun already too old, and look fast for a while."""
        self._not_before = self._begun + 1
        self._fast_until_s = self._clock.monotonic() + self._settings.fast_after_change_s
        self._wake.set()

    async def fresh(self) -> Snapshot:
        """Return a reading begun after the last `invalidate` and not older than the slow period."""
        while True:
            latest, news = self.latest, self._news
            if latest is not None and self._is_fresh(latest):
                return latest
            self._wake.set()
            await news.wait()

    def _is_fresh(self, snapshot: Snapshot) -> bool:
        age_s = self._clock.monotonic() - snapshot.begun_s
        return snapshot.number >= self._not_before and age_s <= self._settings.slow_period_s

    def _period_s(self, snapshot: Snapshot, *, ready: bool) -> float:
        fast_s, slow_s = self._settings.fast_period_s, self._settings.slow_period_s
        now_s = self._clock.monotonic()
        if now_s < self._fast_until_s:
            return fast_s
        if ready and not snapshot.is_moving():
            return slow_s
        return min(slow_s, max(fast_s, QUIET_SHARE * (now_s - self._changed_s)))

    async def _pause(self, period_s: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(period_s):
                await self._wake.wait()

    async def _read(self) -> Snapshot:
        self._begun += 1
        number, begun_s = self._begun, self._clock.monotonic()
        try:
            rows = await self._ask()
        except Unavailable as error:
            return Snapshot(number=number, begun_s=begun_s, error=str(error))
        return Snapshot(number=number, begun_s=begun_s, rows=rows, sync=self._read_sync())

    async def _ask(self) -> tuple[IndexRow, ...]:
        url = f"{self._url}/v2/repository/index"
        answer = await self._http.request("POST", url, body=b"{}", timeout_s=self._timeout_s)
        if answer.status != 200:
            raise Unavailable(f"repository index answered {answer.status}: {answer.text()[:200]}")
        return parse_index(answer.body)
