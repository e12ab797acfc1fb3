"""The open-loop load as a process of its own, so that it shares no loop with what it measures."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from maserve.testing.load_results import LoadSummary

LONGEST_S = 600.0
_ANSWER_S = 20.0


class LoadProcess:
    """A load under way; `finish` ends it."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def finish(self) -> LoadSummary:
        """Send nothing more, wait for the answers under way and return what came of it all."""
        self._process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(_ANSWER_S):
            out, err = await self._process.communicate()
        if not out:
            raise RuntimeError(f"the load ended without a summary: {err.decode()[-2000:]}")
        return LoadSummary.from_json(out.decode())


@asynccontextmanager
async def load_on(
    url: str, body: Path, *, rate_per_s: float, longest_s: float = LONGEST_S
) -> AsyncIterator[LoadProcess]:
    """Post the body to the URL at that rate; returns when the first answer is there."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "maserve.testing.load", url),
        *(f"--body={body}", f"--rate={rate_per_s:g}", f"--seconds={longest_s:g}"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        if process.stderr is None:
            raise RuntimeError("the load has no stderr")
        async with asyncio.timeout(_ANSWER_S):
            await process.stderr.readline()
        yield LoadProcess(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
