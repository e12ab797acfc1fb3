"""The queue between events and workers: deduplicating, rate-limited, one worker per key."""

import asyncio
import random
from collections.abc import Hashable
from typing import Generic, TypeVar

from maserve.base.backoff import Backoff
from maserve.base.clock import Clock
from maserve.base.tasks import run_until
from maserve.runtime.queue_state import QueueState, QueueStats

K = TypeVar("K", bound=Hashable)

RETRY_BACKOFF = Backoff(initial_s=0.005, limit_s=30.0, jitter=0.1)
"""How long a failed key waits: from 5 ms as in client-go; what recovers is seen within 30 s."""


class WorkQueue(Generic[K]):
    """Keys waiting for a worker. Adds are synchronous, from the loop's thread.

    `run` moves keys whose time has come; without it only `add` makes keys ready.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        backoff: Backoff = RETRY_BACKOFF,
        rng: random.Random | None = None,
    ) -> None:
        self._clock = clock
        self._backoff = backoff
        self._rng = rng
        self._state: QueueState[K] = QueueState()
        self._failures: dict[K, int] = {}
        self._ready = asyncio.Event()
        self._earlier = asyncio.Event()

    @property
    def stats(self) -> QueueStats:
        return self._state.stats

    @property
    def depth(self) -> int:
        """How many keys are ready for a worker."""
        return self._state.depth

    @property
    def working(self) -> int:
        """How many keys are being worked on."""
        return self._state.working

    @property
    def delayed(self) -> int:
        """How many keys have a later time."""
        return self._state.delayed

    def add(self, key: K) -> None:
        """Have `key` worked on as soon as possible; after the work on it that goes on."""
        if self._state.add(key, self._clock.monotonic()):
            self._ready.set()

    def add_after(self, key: K, delay_s: float) -> None:
        """Have `key` worked on in `delay_s`; the earliest of several such times counts."""
        if delay_s <= 0:
            self.add(key)
        elif self._state.add_at(key, self._clock.monotonic() + delay_s):
            self._earlier.set()

    def add_rate_limited(self, key: K) -> float:
        """Have `key` worked on after its backoff, which grows with each call; return the delay."""
        self._failures[key] = self._failures.get(key, 0) + 1
        self.stats.retries += 1
        delay_s = self._backoff.delay_s(self._failures[key], self._rng)
        self.add_after(key, delay_s)
        return delay_s

    def forget(self, key: K) -> None:
        """Start the backoff of `key` anew; its ready and later times stay."""
        self._failures.pop(key, None)

    def failures(self, key: K) -> int:
        """Return how often `key` was rate-limited since it was last forgotten."""
        return self._failures.get(key, 0)

    async def get(self) -> K | None:
        """Return the next key, for which `done` must be called; None once shut down and empty."""
        while True:
            key = self._state.take(self._clock.monotonic())
            if key is not None or self._state.is_closed:
                return key
            self._ready.clear()
            await self._ready.wait()

    def done(self, key: K) -> None:
        """End the work on `key`, which may then be handed out again."""
        if self._state.done(key, self._clock.monotonic()):
            self._ready.set()

    def shut_down(self) -> None:
        """Take no more keys. Ready ones are still handed out, later ones are dropped."""
        self._state.close()
        self._ready.set()
        self._earlier.set()

    async def run(self) -> None:
        """Make keys ready when their time comes; returns after `shut_down`."""
        while not self._state.is_closed:
            self._earlier.clear()
            due_s = self._state.next_due_s()
            if due_s is None:
                await self._earlier.wait()
            elif due_s > self._clock.monotonic():
                await run_until(self._earlier, self._sleep_until(due_s))
            elif self._state.promote(self._clock.monotonic()):
                self._ready.set()

    async def _sleep_until(self, due_s: float) -> None:
        await self._clock.sleep(due_s - self._clock.monotonic())
        self._earlier.set()
