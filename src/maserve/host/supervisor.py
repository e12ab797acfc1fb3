"""Starts programs that outlive us, finds them again, notices their end, ends them.

**Invariant:** no program is ever lost: its record is on disk before it starts and is removed only
when nothing with its marker runs any more. Ending the supervisor ends no program.
"""

import asyncio
import contextlib
import signal
import subprocess
import uuid
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import structlog

from maserve.base.clock import Clock
from maserve.base.errors import Exists, Unavailable
from maserve.host.files import remove_file
from maserve.host.logs import cap_log
from maserve.host.proc import Identity
from maserve.host.process import Exit, Process
from maserve.host.program import (
    Program,
    Record,
    find_leader,
    kill_marked,
    list_records,
    record_path,
    save_record,
    send_signal,
    spawn,
    with_identity,
)
from maserve.host.worker import Worker

LOG_CHECK_S = 30.0
"""How often log sizes are looked at."""

SWEEP_TRIES = 250
SWEEP_PAUSE_S = 0.02

log = structlog.get_logger()


class Supervisor:
    """Keeps programs by name. Use as `async with`: entering adopts what an earlier life started.

    Everything is called from one event loop. `folder` holds the records.
    """

    def __init__(
        self, folder: Path, *, clock: Clock, log_limit_bytes: int = 64 * 1024 * 1024
    ) -> None:
        self._folder = folder
        self._clock = clock
        self._log_limit_bytes = log_limit_bytes
        self._worker = Worker("supervisor")
        self._processes: dict[str, Process] = {}
        self._starting: dict[str, asyncio.Event] = {}
        self._spawned: dict[str, tuple[Record, subprocess.Popen[bytes]]] = {}

    async def __aenter__(self) -> Self:
        for record in await self._worker.call(list_records, self._folder):
            await self._adopt(record)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._worker.call(_nothing)
        self._collect()
        for process in self._processes.values():
            process.forget()
        self._processes.clear()
        self._worker.close()

    async def run(self) -> None:
        """Keep log files below their limit until cancelled."""
        while True:
            await self._clock.sleep(LOG_CHECK_S)
            for process in self.list_running():
                await self._cap(process.record.log)

    async def start(self, program: Program) -> Process:
        """Start the program; what an earlier one of that name left behind is killed first.

        Raises `Exists` when it runs, `Unavailable` when it cannot be started.
        """
        if program.name in self._starting:
            raise Exists("program", program.name)
        over = self._starting[program.name] = asyncio.Event()
        try:
            await self._worker.call(_nothing)  # a start that was cancelled half-way is over now
            if self.find(program.name) is not None:
                raise Exists("program", program.name)
            await self.settle(program.name)
            await self._worker.call(self._spawn, program)
        finally:
            del self._starting[program.name]
            over.set()
        self._collect()
        process = self._processes[program.name]
        log.info("program started", program=program.name, pid=process.pid)
        return process

    def find(self, name: str) -> Process | None:
        """Return the running program of that name, None when it does not run."""
        self._collect()
        process = self._processes.get(name)
        return process if process is not None and not process.exited.is_set() else None

    def list_running(self) -> tuple[Process, ...]:
        """Return all running programs by name."""
        self._collect()
        running = (one for one in self._processes.values() if not one.exited.is_set())
        return tuple(sorted(running, key=lambda process: process.name))

    async def terminate(self, name: str, *, grace_s: float) -> Exit | None:
        """End the program: SIGTERM, up to `grace_s`, then SIGKILL for it and all it started.

        Returns once nothing of it runs and its record is gone; None if there was no such program.
        One that is being started is ended too.
        """
        if starting := self._starting.get(name):
            await starting.wait()
        await self._worker.call(_nothing)  # so is one whose start was cancelled half-way
        self._collect()
        process = self._processes.get(name)
        if process is not None and not process.exited.is_set():
            await self._end(process, grace_s)
        await self.settle(name)
        return process.exit if process is not None else None

    async def _end(self, process: Process, grace_s: float) -> None:
        send_signal(process.identity, signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(grace_s, 0.0)):
                await process.exited.wait()
                return
        log.warning("program killed after its grace period", program=process.name, pid=process.pid)
        send_signal(process.identity, signal.SIGKILL)
        await process.exited.wait()

    async def settle(self, name: str) -> None:
        """Kill what a program that has ended left behind and remove its record.

        A program that runs, or is not known, is left alone.
        """
        process = self._processes.get(name)
        if process is None or not process.exited.is_set():
            return
        await self._sweep(process.record)
        self._processes.pop(name, None)

    async def _adopt(self, record: Record) -> None:
        leader = await self._worker.call(find_leader, record)
        if leader is None:
            await self._sweep(record)
            log.info("program ended while away", program=record.name)
            return
        process = Process(record, leader, None)
        self._processes[record.name] = process
        process.watch()
        log.info("program adopted", program=record.name, pid=process.pid)

    async def _sweep(self, record: Record) -> None:
        for _ in range(SWEEP_TRIES):
            if await self._worker.call(kill_marked, record) == 0:
                await self._worker.call(remove_file, record_path(self._folder, record.name))
                return
            await self._clock.sleep(SWEEP_PAUSE_S)
        raise Unavailable(f"processes of {record.name} cannot be killed")

    def _spawn(self, program: Program) -> None:
        """Start on the worker's thread; a cancelled caller finds the result in `_spawned`."""
        record = Record(
            name=program.name,
            marker=uuid.uuid4().hex,
            digest=program.digest(),
            log=program.log,
        )
        save_record(self._folder, record)
        try:
            child = spawn(program, record)
        except Unavailable:
            remove_file(record_path(self._folder, record.name))
            raise
        known = with_identity(record, child.pid)
        self._spawned[program.name] = (known, child)
        with contextlib.suppress(Unavailable):  # a full disk: the marker still finds it
            save_record(self._folder, known)

    def _collect(self) -> None:
        """Take over what the worker's thread has started since."""
        while self._spawned:
            name, (record, child) = self._spawned.popitem()
            identity = record.identity or Identity(pid=child.pid, ticks=0, boot="")
            process = Process(record, identity, child)
            self._processes[name] = process
            process.watch()

    async def _cap(self, path: Path) -> None:
        try:
            await self._worker.call(cap_log, path, self._log_limit_bytes)
        except OSError as error:
            log.warning("log cannot be cut", path=str(path), error=str(error))


def clean_environment(base: Mapping[str, str], names: tuple[str, ...]) -> dict[str, str]:
    """Return only the named variables of an environment."""
    return {name: base[name] for name in names if name in base}


def _nothing() -> None:
    return None
