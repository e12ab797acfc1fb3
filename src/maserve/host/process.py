"""A running program, and how it ended."""

import asyncio
import os
import signal
import subprocess
from dataclasses import dataclass
from datetime import datetime

from maserve.host.proc import Identity, is_alive, started_at
from maserve.host.program import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """How a program ended. `code` is negative for a signal, None when we are not its parent."""

    name: str
    pid: int
    code: int | None

    def __str__(self) -> str:
        if self.code is None:
            return "ended"
        return (
            f"killed by {_signal_name(-self.code)}" if self.code < 0 else f"exit code {self.code}"
        )


class Process:
    """A running program. `exited` is set at once when it ends; `exit` says how."""

    def __init__(
        self, record: Record, identity: Identity, child: subprocess.Popen[bytes] | None
    ) -> None:
        self.record = record
        self.identity = identity
        self.exited = asyncio.Event()
        self.exit: Exit | None = None
        self._child = child
        self._descriptor = -1

    @property
    def name(self) -> str:
        return self.record.name

    @property
    def pid(self) -> int:
        return self.identity.pid

    @property
    def digest(self) -> str:
        """Return `Program.digest` of what was started."""
        return self.record.digest

    @property
    def started(self) -> datetime:
        return started_at(self.identity)

    def watch(self) -> None:
        """Begin to notice the end, on the running loop; that may be over already."""
        try:
            self._descriptor = os.pidfd_open(self.pid)
        except ProcessLookupError:
            self._note_exit()
            return
        if self._child is None and not is_alive(self.identity):  # the pid is somebody else's
            self._note_exit()
            return
        asyncio.get_running_loop().add_reader(self._descriptor, self._note_exit)

    def forget(self) -> None:
        """Stop noticing; the program runs on."""
        self._unwatch()
        if self._child is not None and self._child.returncode is None:
            self._child.returncode = 0  # it outlives us on purpose; else Popen warns about it

    def _note_exit(self) -> None:
        self._unwatch()
        code = self._child.wait() if self._child is not None else None
        self.exit = Exit(name=self.name, pid=self.pid, code=code)
        self.exited.set()

    def _unwatch(self) -> None:
        if self._descriptor >= 0:
            asyncio.get_running_loop().remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
