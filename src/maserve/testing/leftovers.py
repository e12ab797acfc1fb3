"""The programs of a data folder, and what they leave outside of it when they are killed.

A control plane that starts on the folder again removes that. After a test none ever does.
"""

import os
import signal
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from maserve.backends.triton.local.parts import ReplicaPaths
from maserve.backends.triton.local.programs import shm_prefix
from maserve.base.errors import Error
from maserve.envoy.layout import Layout
from maserve.envoy.process import remove_socket
from maserve.host import DataFolder, remove_shared_memory
from maserve.host.program import kill_marked, list_records

_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - where POSIX shared memory lives


def list_programs(folder: DataFolder) -> Mapping[int, str]:
    """Return the command lines, by pid, of all processes that have to do with the folder."""
    mark = str(folder.path).encode()
    pids = sorted(int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit())
    mine = os.getpid()
    return {
        pid: _read(pid, "cmdline").decode(errors="replace")
        for pid in pids
        if pid != mine and mark in _read(pid, "cmdline") + _read(pid, "environ")
    }


def kill_programs(folder: DataFolder) -> None:
    """Kill every program, as a machine does that loses its power.

    The records alone do not tell all: a test that fails may have left them unreadable.
    """
    with suppress(Error, OSError):
        for record in list_records(folder.processes):
            kill_marked(record)
    for pid in list_programs(folder):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def sweep(folder: DataFolder) -> None:
    """Remove shared memory and socket of programs that have ended; only when no more will start."""
    for prefix in _prefixes(folder):
        remove_shared_memory(prefix)
    envoy = Layout(folder.path / "envoy")
    remove_socket(envoy.admin_socket(Path(tempfile.gettempdir())), keep=envoy.folder)


def list_shared_memory(folder: DataFolder) -> list[Path]:
    """Return the shared memory of all replicas; other tests on this machine have theirs."""
    prefixes = _prefixes(folder)
    return [path for path in _SHARED_MEMORY.iterdir() if path.name.startswith(prefixes)]


def _prefixes(folder: DataFolder) -> tuple[str, ...]:
    homes = folder.clusters.glob("*/*/*/replicas/*")
    return tuple(shm_prefix(ReplicaPaths(home=home)) for home in homes)


def _read(pid: int, name: str) -> bytes:
    """Return what a process shows of itself; nothing for a zombie."""
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes().replace(b"\0", b" ")
    except OSError:
        return b""
