"""Telling when processes end that somebody else has started (Linux: pidfds and /proc)."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

_PROC = Path("/proc")


def find_processes(argument: str) -> tuple[int, ...]:
    """Return the pids of the processes that have an argument beginning with `argument`.

    Processes that this one cannot see are not among them, nor those that have ended.
    """
    wanted = argument.encode()
    found = []
    for entry in _PROC.iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue  # it has ended meanwhile
        if any(word.startswith(wanted) for word in words):
            found.append(int(entry.name))
    return tuple(sorted(found))


class EndWatch:
    """Calls `on_end` once, on the running loop, when a process ends; it costs nothing until then.

    A process that has ended already, or cannot be watched, ends at once.
    """

    def __init__(self, pid: int, on_end: Callable[[], None]) -> None:
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        self._descriptor = -1
        try:
            self._descriptor = os.pidfd_open(pid)
        except OSError:
            self._loop.call_soon(on_end)
        else:
            self._loop.add_reader(self._descriptor, self._ended)

    def close(self) -> None:
        """Watch no longer."""
        if self._descriptor >= 0:
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1

    def _ended(self) -> None:
        self.close()
        self._on_end()
