"""Keeps one program running: starts it, waits for its end, starts it again after a pause."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import structlog

from maserve.backends.triton.settings import EmbeddedSettings
from maserve.base.backoff import Backoff
from maserve.base.clock import Clock
from maserve.base.errors import Error, Unavailable
from maserve.base.tasks import run_until
from maserve.host import (
    Process,
    Supervisor,
    activity,
    log_size_bytes,
    read_log_from,
    tail_log,
)

log = structlog.get_logger()


class Keeper:
    """Runs until cancelled, which leaves the program running.

    `ensure` returns the running program or starts it, with its output in the file `output`;
    `observe` runs beside the program until it ends. `on_exit` is called in the moment it has ended,
    before anything is cleaned up. `on_down` then gets the reason, the text logged since the start
    and the failures in a row; True means start again at once.
    """

    def __init__(
        self,
        name: str,
        *,
        supervisor: Supervisor,
        clock: Clock,
        settings: EmbeddedSettings,
        output: Path,
        ensure: Callable[[], Awaitable[Process]],
        observe: Callable[[Process], Awaitable[None]],
        on_exit: Callable[[], None],
        on_down: Callable[[str, str, int], Awaitable[bool]],
    ) -> None:
        self._name = name
        self._supervisor = supervisor
        self._clock = clock
        self._settings = settings
        self._output = output
        self._ensure = ensure
        self._observe = observe
        self._on_exit = on_exit
        self._on_down = on_down
        self._backoff = Backoff(
            initial_s=settings.restart_initial_s, limit_s=settings.restart_limit_s
        )
        self._killed_for = ""

    async def run(self) -> None:
        """Keep the program running."""
        failures = 0
        while True:
            began_s = self._clock.monotonic()
            reason, said = await self._one_life()
            lived_s = self._clock.monotonic() - began_s
            failures = 1 if lived_s >= self._settings.restart_reset_s else failures + 1
            log.warning("program is down", program=self._name, reason=reason, attempt=failures)
            if not await self._on_down(reason, said, failures):
                await self._clock.sleep(self._backoff.delay_s(failures))

    async def kill(self, reason: str, *, grace_s: float) -> None:
        """End the running program; `reason` is what its end will be reported with."""
        self._killed_for = reason
        await self._clean(self._supervisor.terminate(self._name, grace_s=grace_s))

    async def _one_life(self) -> tuple[str, str]:
        """Return why the program does not run any more, and what it said meanwhile."""
        self._killed_for = ""
        offset = log_size_bytes(self._output)
        try:
            process = await self._ensure()
        except Error as error:
            return str(error), ""
        await run_until(process.exited, _forever(self._observe, process))
        self._on_exit()
        await self._clean(self._supervisor.settle(self._name))
        reason = self._killed_for or f"{process.exit}{_last_words(self._output)}"
        return reason, read_log_from(self._output, offset)

    async def _clean(self, work: Awaitable[object]) -> None:
        """Remove what a life has left; what cannot be removed now holds up the next start."""
        try:
            await work
        except Unavailable as error:
            log.warning("program is not cleaned up", program=self._name, error=str(error))


async def wait_hung(process: Process, clock: Clock, limit_s: float) -> None:
    """Return once the program has been stopped or blocked for `limit_s`."""
    seen, since_s = -1, clock.monotonic()
    while clock.monotonic() - since_s < limit_s:
        await clock.sleep(limit_s / 4)
        now = activity(process.pid)
        if now != seen:
            seen, since_s = now, clock.monotonic()


async def _forever(observe: Callable[[Process], Awaitable[None]], process: Process) -> None:
    """Observe; what returns early leaves the program alone."""
    await observe(process)
    await asyncio.Event().wait()


def _last_words(path: Path) -> str:
    lines = [line.strip() for line in tail_log(path, 20) if line.strip()]
    return f": {lines[-1][:300]}" if lines else ""
