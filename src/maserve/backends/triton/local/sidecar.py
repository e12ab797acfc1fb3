"""The model-sync process beside one replica's engine."""

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
        limit_s = self._parts.settings.embedded.model_sync_hang_s
        await wait_hung(process, self._parts.clock, limit_s)
        await self._keeper.kill(f"it did nothing for {limit_s:g} s", grace_s=GRACE_S)

    async def _note_down(self, reason: str, _said: str, _failures: int) -> bool:
        self.reason = reason
        self._on_change()
        return False
