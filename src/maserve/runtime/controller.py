"""A controller: workers that take keys from a queue and have them reconciled, whatever happens."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog

from maserve.base.clock import Clock
from maserve.base.errors import Conflict, Denied, Error, Invalid, Unsupported
from maserve.base.keys import Key
from maserve.runtime.metrics import ControllerMetrics
from maserve.runtime.outcome import After, Again, Outcome, Stop
from maserve.runtime.queue import WorkQueue

Reconcile = Callable[[Key], Awaitable[Outcome]]

Tell = Callable[[Key, str], None]
"""Lets a user know why an object got no further in a pass; must not raise."""

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerSettings:
    """How one controller works.

    A pass that runs longer than `timeout_s` is cancelled and retried. `conflicts` and `restarts`
    bound how often in a row one object is looked at again at once, after a lost race and after
    `Again`; beyond `restarts` it is looked at every `slow_s`. `refused_s` is the wait after an
    error that no retry is known to clear.
    """

    workers: int = 3
    timeout_s: float = 60.0
    conflicts: int = 5
    restarts: int = 200
    slow_s: float = 1.0
    refused_s: float = 300.0


class Controller:
    """Runs `reconcile` for each added key, never twice at once for one key, and loses none.

    What a pass raises it cannot have recorded in the object: it is logged, and told once.
    """

    def __init__(
        self,
        name: str,
        reconcile: Reconcile,
        *,
        clock: Clock,
        rng: random.Random,
        queue: WorkQueue[Key],
        metrics: ControllerMetrics,
        settings: ControllerSettings,
        tell: Tell,
    ) -> None:
        self.name = name
        self._reconcile = reconcile
        self._clock = clock
        self._rng = rng
        self._queue = queue
        self._metrics = metrics
        self._settings = settings
        self._tell = tell
        self._log = _log.bind(controller=name)
        self._conflicts: dict[Key, int] = {}
        self._restarts: dict[Key, int] = {}
        self._reported: dict[Key, str] = {}

    def enqueue(self, key: Key) -> None:
        """Have `key` reconciled as soon as a worker is free."""
        self._queue.add(key)

    def stop(self) -> None:
        """Let `run` return after the ready keys have been reconciled; take no further ones."""
        self._queue.shut_down()

    async def run(self) -> None:
        """Work until `stop` or cancelled; a pass may be cancelled at any line of it."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._queue.run(), name=f"{self.name}-queue")
            for number in range(self._settings.workers):
                group.create_task(self._work(), name=f"{self.name}-{number}")

    async def _work(self) -> None:
        while (key := await self._queue.get()) is not None:
            try:
                await self._pass(key)
            finally:
                self._queue.done(key)

    async def _pass(self, key: Key) -> None:
        began_s = self._clock.monotonic()
        with structlog.contextvars.bound_contextvars(
            controller=self.name,
            namespace=key.namespace,
            name=key.name,
            reconcile_id=f"{self._rng.getrandbits(32):08x}",
        ):
            result = await self._attempt(key)
        self._metrics.passes[result].inc()
        self._metrics.duration.observe(self._clock.monotonic() - began_s)

    async def _attempt(self, key: Key) -> str:
        """Reconcile once and say when to look again; return the result for the metrics."""
        deadline = asyncio.timeout(self._settings.timeout_s)
        try:
            async with deadline:
                outcome = await self._reconcile(key)
        except Conflict as error:
            return self._after_conflict(key, error)
        except (Invalid, Denied, Unsupported) as error:
            return self._after_refusal(key, error)
        except Error as error:
            self._retry(key, "reconcile failed", str(error))
            return "retry"
        except Exception as error:  # noqa: BLE001 - a bug in one pass must not end the worker
            if isinstance(error, TimeoutError) and deadline.expired():
                self._retry(key, "reconcile timed out", f"{self._settings.timeout_s:g}s")
                return "timeout"
            self._after_bug(key, error)
            return "bug"
        return self._after_success(key, outcome)

    def _after_success(self, key: Key, outcome: Outcome) -> str:
        self._queue.forget(key)
        self._conflicts.pop(key, None)
        if isinstance(outcome, Stop):
            return self._after_stop(key, outcome.reason)
        if isinstance(outcome, Again):
            return self._restart(key)
        self._restarts.pop(key, None)
        self._reported.pop(key, None)
        if isinstance(outcome, After):
            self._queue.add_after(key, outcome.seconds)
            return "after"
        return "done"

    def _restart(self, key: Key) -> str:
        self._restarts[key] = self._restarts.get(key, 0) + 1
        if self._restarts[key] <= self._settings.restarts:
            self._queue.add(key)
            return "again"
        if self._is_news(key, "does not settle"):
            self._log.warning("reconcile does not settle", attempt=self._restarts[key])
        self._queue.add_after(key, self._settings.slow_s)
        return "again"

    def _after_stop(self, key: Key, reason: str) -> str:
        if self._is_news(key, reason):
            self._log.warning("reconcile stopped", reason=reason)
        return "stop"

    def _after_conflict(self, key: Key, error: Conflict) -> str:
        self._conflicts[key] = self._conflicts.get(key, 0) + 1
        if self._conflicts[key] <= self._settings.conflicts:
            self._queue.add(key)
        else:
            self._retry(key, "reconcile keeps losing the race", str(error))
        return "conflict"

    def _after_refusal(self, key: Key, error: Error) -> str:
        if self._is_news(key, f"{type(error).__name__}: {error}"):
            self._log.error("reconcile refused", error=str(error))
            self._tell(key, f"{error}; tried again every {self._settings.refused_s:g} s")
        self._queue.add_after(key, self._settings.refused_s)
        return "refused"

    def _after_bug(self, key: Key, error: Exception) -> None:
        if self._is_news(key, repr(error)):
            self._log.error("reconcile raised", error=repr(error), exc_info=error)
            self._tell(key, f"{error!r}: a fault of the control plane or a plugin; tried again")
        self._queue.add_rate_limited(key)

    def _retry(self, key: Key, event: str, error: str) -> None:
        attempt = self._queue.failures(key) + 1
        delay_s = self._queue.add_rate_limited(key)
        if self._is_news(key, f"{event}: {error}"):
            self._log.warning(event, error=error, attempt=attempt, retry_s=round(delay_s, 3))
            self._tell(key, f"{event}: {error}; tried again")

    def _is_news(self, key: Key, text: str) -> bool:
        """Tell whether this is not what was logged last for `key`: each error is logged once."""
        if self._reported.get(key) == text:
            return False
        self._reported[key] = text
        return True
