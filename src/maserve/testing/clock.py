"""Clocks for tests: one that is moved by hand, one that follows the event loop's own time."""

import asyncio
from datetime import UTC, datetime, timedelta
from heapq import heappop, heappush

EPOCH = datetime(2030, 1, 1, tzinfo=UTC)
"""Where both clocks start."""


class FakeClock:
    """Stands still until `advance`; starts at `EPOCH` and at 0 seconds."""

    def __init__(self) -> None:
        self._elapsed_s = 0.0
        self._sleepers: list[tuple[float, int, asyncio.Event]] = []
        self._count = 0

    def now(self) -> datetime:
        return EPOCH + timedelta(seconds=self._elapsed_s)

    def monotonic(self) -> float:
        return self._elapsed_s

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        self._count += 1
        awake = asyncio.Event()
        heappush(self._sleepers, (self._elapsed_s + seconds, self._count, awake))
        await awake.wait()

    def advance(self, seconds: float) -> None:
        """Move on and wake, in order, whoever is due; they run once the caller awaits."""
        self._elapsed_s += seconds
        while self._sleepers and self._sleepers[0][0] <= self._elapsed_s:
            heappop(self._sleepers)[2].set()


class LoopClock:
    """Follows the running loop's time; under `looptime` that is virtual and a sleep is instant."""

    def now(self) -> datetime:
        return EPOCH + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(0.0, seconds))
