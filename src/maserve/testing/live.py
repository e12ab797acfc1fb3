"""`maserve up` as a real process in a data folder of its own: started, killed, started again.

Nothing is replaced: what runs is the program a user runs, with its Triton and Envoy processes.
"""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

from maserve.base.clock import SystemClock
from maserve.client import Client
from maserve.host import DataFolder, find_json
from maserve.testing.leftovers import kill_programs, list_programs, sweep
from maserve.testing.loopback import free_port

PROGRAM = ("-m", "maserve.cmd.main")
"""The program, as arguments of the interpreter; `up` and its options follow."""

START_S = 40.0
STOP_S = 40.0
_LOOK_S = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    """Where one control plane answers, from its first start to its last."""

    api: str
    gateway: str
    metrics: str


class LiveControlPlane:
    """One data folder, and the process that serves it while one does."""

    def __init__(
        self, folder: Path, settings: Mapping[str, object], program: Sequence[str] = PROGRAM
    ) -> None:
        self.data = folder / "data"
        self.at = Addresses(
            api=f"127.0.0.1:{free_port()}",
            gateway=f"127.0.0.1:{free_port()}",
            metrics=f"127.0.0.1:{free_port()}",
        )
        self.program = tuple(program)
        """What the next start runs."""
        self._settings = folder / "settings.yaml"
        self.use_settings(settings)
        self._log = folder / "up.log"
        self._process: asyncio.subprocess.Process | None = None
        self._client: Client | None = None

    @property
    def client(self) -> Client:
        """Return a client of the running process; each start has a new one."""
        if self._client is None:
            raise RuntimeError("the control plane does not run")
        return self._client

    @property
    def pid(self) -> int:
        return self._process.pid if self._process is not None else 0

    def use_settings(self, settings: Mapping[str, object]) -> None:
        """Write the settings that the next start reads."""
        self.settings = dict(settings)
        self._settings.write_text(yaml.safe_dump(self.settings))

    async def start(self, *options: str) -> None:
        """Start it and return once it says `ready`. Raises `RuntimeError` with what it said."""
        seen = len(self.said())
        self._process = await self._spawn("up", *self._addresses(), *options)
        async with asyncio.timeout(START_S):
            while " ready " not in self.said()[seen:]:
                if self._process.returncode is not None:
                    raise RuntimeError(f"did not start: {self.said()[seen:]}")
                await SystemClock().sleep(_LOOK_S)
        self._client = await Client(self.at.api).__aenter__()

    async def kill(self) -> None:
        """End the control plane with SIGKILL; what it started runs on."""
        await self._end(signal.SIGKILL)

    async def stop(self) -> int:
        """End it with SIGTERM and return its exit status."""
        return await self._end(signal.SIGTERM)

    async def down(self) -> str:
        """Run `maserve down` on the data folder and return what it said."""
        seen = len(self.said())
        process = await self._spawn("down", "--data-dir", str(self.data))
        async with asyncio.timeout(STOP_S):
            await process.wait()
        return self.said()[seen:]

    async def command(self, *words: str, code: int = 0) -> str:
        """Run a command against this API server; it must end with `code`. Return what it said."""
        seen = len(self.said())
        process = await self._spawn(*words, "--api-address", self.at.api)
        async with asyncio.timeout(STOP_S):
            ended = await process.wait()
        said = self.said()[seen:]
        assert ended == code, said  # noqa: S101
        return said

    async def try_second(self) -> tuple[int, str]:
        """Start another one on the same data folder; return how it ended and what it said."""
        seen = len(self.said())
        free = [f"--{name}-address=127.0.0.1:0" for name in ("api", "gateway", "metrics")]
        process = await self._spawn("up", "--data-dir", str(self.data), *free)
        async with asyncio.timeout(START_S):
            code = await process.wait()
        return code, self.said()[seen:]

    def said(self) -> str:
        """Return everything its processes have printed."""
        return self._log.read_text() if self._log.exists() else ""

    def data_plane_pids(self) -> dict[str, int]:
        """Return the pids of the engines and of the gateway, by program name."""
        names_of_sync = "model-sync"
        return {name: pid for name, pid in self.program_pids().items() if names_of_sync not in name}

    def program_pids(self) -> dict[str, int]:
        """Return the pids of everything the data folder's supervisor has on record."""
        rows = [find_json(path) for path in sorted(DataFolder(self.data).processes.glob("*.json"))]
        return {row["name"]: row["pid"] for row in rows if isinstance(row, dict)}

    def leftovers(self) -> tuple[str, ...]:
        """Return the command lines of all processes that have to do with the data folder."""
        found = list_programs(DataFolder(self.data))
        return tuple(f"{pid}: {line}" for pid, line in found.items())

    def kill_leftovers(self) -> None:
        """Kill, by pid, whatever still runs of the data folder."""
        kill_programs(DataFolder(self.data))

    def replica_files(self) -> tuple[str, ...]:
        """Return the files and folders of replicas and model lists, relative to the data folder."""
        found = sorted((self.data / "clusters").rglob("*"))
        return tuple(str(path.relative_to(self.data)) for path in found)

    def traffic_rows(self) -> tuple[str, ...]:
        """Return what the data plane still has: routes, services and clusters' listeners."""
        state = find_json(self.data / "envoy" / "state.json")
        if state is None:
            return ()
        rows = [f"{row['cluster']}/{row['name']}" for row in state["routes"] + state["services"]]
        return (*rows, *state["listeners"])

    async def aclose(self) -> None:
        """End the process however it can be ended and leave nothing running."""
        await self._end(signal.SIGKILL)
        self.kill_leftovers()
        sweep(DataFolder(self.data))

    async def _spawn(self, *words: str) -> asyncio.subprocess.Process:
        with self._log.open("ab") as log:
            return await asyncio.create_subprocess_exec(
                sys.executable, *self.program, *words, stdout=log, stderr=log
            )

    def _addresses(self) -> list[str]:
        return [
            f"--data-dir={self.data}",
            f"--config={self._settings}",
            f"--api-address={self.at.api}",
            f"--gateway-address={self.at.gateway}",
            f"--metrics-address={self.at.metrics}",
        ]

    async def _end(self, number: signal.Signals) -> int:
        if self._client is not None:
            await self._client.__aexit__(None, None, None)
            self._client = None
        if self._process is None:
            return 0
        if self._process.returncode is None:
            self._process.send_signal(number)
        async with asyncio.timeout(STOP_S):
            code = await self._process.wait()
        self._process = None
        return code


@asynccontextmanager
async def live_control_plane(
    folder: Path, settings: Mapping[str, object], program: Sequence[str] = PROGRAM
) -> AsyncIterator[LiveControlPlane]:
    """Run a control plane; kills whatever it leaves, and fails nothing by itself."""
    plane = LiveControlPlane(folder, settings, program)
    try:
        await plane.start()
        yield plane
    finally:
        await plane.aclose()


def kill_process(pid: int) -> None:
    """End one process with SIGKILL, as an out-of-memory killer would."""
    os.kill(pid, signal.SIGKILL)
