"""The model-sync process beside one replica's engine."""

import math
from collections.abc import Awaitable, Callable
from pathlib import Path

from maserve.backends.triton.local.keeper import Keeper, wait_hung
from maserve.backends.triton.local.parts import LocalTritonParts
from maserve.host import Process, Program

GRACE_S = 5.0
"""Between SIGTERM and SIGKILL: it breaks off its downloads and ends."""


class Sidecar:
    """Runs until cancelled, which leaves the process running.

    `program` says how it is to be started now. `on_change` is called when `reason` has changed: why
    it does not run, empty while it does.
    """

    def __init__(
        self,
        name: str,
        parts: LocalTritonParts,
        *,
        output: Path,
        program: Callable[[], Awaitable[Program]],
        on_change: Callable[[], None],
    ) -> None:
        self._name = name
        self._parts = parts
        self._program = program
        self._on_change = on_change
        self._keeper = Keeper(
            name,
            supervisor=parts.supervisor,
            clock=parts.clock,
            settings=parts.settings.embedded,
            output=output,
            ensure=self._ensure,
            observe=self._observe,
            on_exit=on_change,
            on_down=self._note_down,
        )
        self.reason = ""
        self._ended = ""
        self._ended_s = -math.inf

    @property
    def warning(self) -> str:
        """Return why it does not run, or lately did not; empty while there is nothing to tell."""
        if self.reason:
            return f"model-sync does not run: {self.reason}"
        lately_s = self._parts.settings.embedded.restart_reset_s
        is_lately = self._parts.clock.monotonic() - self._ended_s < lately_s
        return f"model-sync was started anew: {self._ended}" if is_lately else ""

    async def run(self) -> None:
        """Keep it running."""
        await self._keeper.run()

    async def end(self) -> None:
        """End it; one that is kept running is started anew. Raises `Unavailable`."""
        await self._parts.supervisor.terminate(self._name, grace_s=GRACE_S)

    async def _ensure(self) -> Process:
        """Return the running one, or start it; one with other arguments is ended first."""
        running = self._parts.supervisor.find(self._name)
        if running is not None and running.digest == (await self._program()).digest():
            return running
        if running is not None:
            await self.end()
        return await self._parts.supervisor.start(await self._program())

    async def _observe(self, process: Process) -> None:
        """End it when it hangs: nothing would be loaded here any more, nor unloaded."""
        self.reason = ""
        self._on_change()
        limit_s = self._parts.settings.embedded.model_sync_hang_s
        await wait_hung(process, self._parts.clock, limit_s)
        await self._keeper.kill(f"it did nothing for {limit_s:g} s", grace_s=GRACE_S)

    async def _note_down(self, reason: str, _said: str, _failures: int) -> bool:
        # Its last line is one of its log's, about something else: that is for the log.
        self.reason = self._ended = reason.partition(": {")[0]
        self._ended_s = self._parts.clock.monotonic()
        self._on_change()
        return False
