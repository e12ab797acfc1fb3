"""What the kernel says about processes: identity, session, environment."""

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

_PROC = Path("/proc")
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """One process for all time: a pid may come back, with its start time and boot it does not.

    `ticks` counts clock ticks from boot to the start of the process.
    """

    pid: int
    ticks: int
    boot: str


def find_identity(pid: int) -> Identity | None:
    """Return who has this pid now; None when nobody has or it is a zombie, which does not run."""
    fields = _stat_fields(pid)
    if fields is None or fields[0] in ("Z", "X"):
        return None
    return Identity(pid=pid, ticks=int(fields[19]), boot=boot_id())


def is_alive(identity: Identity) -> bool:
    """Tell whether that very process runs."""
    return find_identity(identity.pid) == identity


def started_at(identity: Identity) -> datetime:
    """Return the wall time of the start, exact to a tick and the clock's steps since boot."""
    return datetime.fromtimestamp(_boot_time_s() + identity.ticks / _TICKS_PER_S, UTC)


def session_of(pid: int) -> int:
    """Return the session id, 0 when the process is gone."""
    fields = _stat_fields(pid)
    return int(fields[3]) if fields else 0


def find_marked(marker: str) -> tuple[Identity, ...]:
    """Return the processes whose environment holds the text `marker` as a whole entry, by pid.

    Children inherit the environment, so this finds a program with everything it started.
    """
    entry = marker.encode()
    pids = sorted(int(name) for name in os.listdir(_PROC) if name.isdigit())  # noqa: PTH208 - no stat
    found = (find_identity(pid) for pid in pids if entry in _environment(pid))
    return tuple(identity for identity in found if identity is not None)


def memory_bytes(pid: int) -> int:
    """Return the resident memory, 0 when the process is gone."""
    try:
        pages = int((_PROC / str(pid) / "statm").read_text().split()[1])
    except (OSError, IndexError, ValueError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def activity(pid: int) -> int:
    """Return a number that grows whenever the main thread runs; it stays while that is blocked.

    A process that waits for its next turn in a loop is not blocked. 0 when it is gone.
    """
    try:
        lines = (_PROC / str(pid) / "task" / str(pid) / "status").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if "_ctxt_switches:" in line)


def boot_id() -> str:
    """Return what changes with every start of the machine."""
    return (_PROC / "sys/kernel/random/boot_id").read_text().strip()


def _stat_fields(pid: int) -> list[str] | None:
    """Return the fields of `stat` from the state on: the name before them may hold anything."""
    try:
        return (_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None


def _environment(pid: int) -> list[bytes]:
    try:
        return (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return []


def _boot_time_s() -> int:
    for line in (_PROC / "stat").read_text().splitlines():
        name, _, value = line.partition(" ")
        if name == "btime":
            return int(value)
    return 0
