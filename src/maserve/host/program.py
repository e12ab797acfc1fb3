"""Programs that are started detached, and what is written down about them.

A program is found again after a crash of its starter: before it starts, a record with a random
marker is on disk, and the marker is in the program's environment.
"""

import hashlib
import json
import os
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from maserve.base.errors import Invalid, Problem, Unavailable
from maserve.host.files import find_json, write_json
from maserve.host.proc import Identity, find_identity, find_marked, session_of

MARK = "MASERVE_PROCESS"
"""The environment variable that carries the marker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What to start. `env` is the whole environment; output is appended to `log`.

    `name` is unique in the data folder. `nice` and `oom_score_adj` go to the kernel.
    """

    name: str
    argv: tuple[str, ...]
    cwd: Path
    log: Path
    env: Mapping[str, str] = field(default_factory=dict)
    nice: int = 0
    oom_score_adj: int | None = None

    def digest(self) -> str:
        """Return what differs when the program has to be started anew to take effect."""
        parts = [list(self.argv), sorted(self.env.items()), str(self.cwd), self.nice]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What the disk says of one program; `identity` is None until the start has been noted."""

    name: str
    marker: str
    digest: str
    log: Path
    identity: Identity | None = None

    @property
    def entry(self) -> str:
        return f"{MARK}={self.marker}"


def spawn(program: Program, record: Record) -> subprocess.Popen[bytes]:
    """Start the program in a session of its own, with no descriptor of ours but its log.

    Raises `Unavailable` naming the program and the reason. Blocks until the program is executed.
    """
    try:
        program.log.parent.mkdir(parents=True, exist_ok=True)
        with program.log.open("ab") as log:
            started = subprocess.Popen(
                program.argv,
                env={**program.env, MARK: record.marker},
                cwd=program.cwd,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
    except OSError as error:
        raise Unavailable(f"cannot start {program.name}: {error}") from error
    _set_limits(program, started.pid)
    return started


def find_leader(record: Record) -> Identity | None:
    """Return the process that was started for this record, None when it no longer runs."""
    known = record.identity
    if known is not None:
        return known if find_identity(known.pid) == known else None
    marked = find_marked(record.entry)
    return next((one for one in marked if session_of(one.pid) == one.pid), None)


def kill_marked(record: Record) -> int:
    """Send SIGKILL to the program and everything it started; returns how many there were."""
    marked = find_marked(record.entry)
    for identity in marked:
        send_signal(identity, signal.SIGKILL)
    return len(marked)


def send_signal(identity: Identity, number: signal.Signals) -> None:
    """Send a signal to exactly that process; one that is gone already is success."""
    try:
        descriptor = os.pidfd_open(identity.pid)
    except ProcessLookupError:
        return
    try:
        if find_identity(identity.pid) == identity:
            signal.pidfd_send_signal(descriptor, number)
    except ProcessLookupError:
        return
    finally:
        os.close(descriptor)


def record_path(folder: Path, name: str) -> Path:
    return folder / f"{hashlib.sha256(name.encode()).hexdigest()[:32]}.json"


def save_record(folder: Path, record: Record) -> None:
    """Write the record durably. Raises `Unavailable` naming the path."""
    identity = record.identity
    row = {
        "name": record.name,
        "marker": record.marker,
        "digest": record.digest,
        "log": str(record.log),
        "pid": identity.pid if identity else 0,
        "ticks": identity.ticks if identity else 0,
        "boot": identity.boot if identity else "",
    }
    write_json(record_path(folder, record.name), row)


def list_records(folder: Path) -> tuple[Record, ...]:
    """Return all records by name. Raises `Invalid` naming a file that cannot be read."""
    found = [_parse_record(path, find_json(path)) for path in sorted(folder.glob("*.json"))]
    return tuple(sorted(found, key=lambda record: record.name))


def with_identity(record: Record, pid: int) -> Record:
    """Return the record with the identity of `pid`; unchanged when that has ended already."""
    return replace(record, identity=find_identity(pid))


def _parse_record(path: Path, row: Any) -> Record:
    try:
        pid = int(row["pid"])
        identity = Identity(pid=pid, ticks=int(row["ticks"]), boot=str(row["boot"]))
        return Record(
            name=str(row["name"]),
            marker=str(row["marker"]),
            digest=str(row["digest"]),
            log=Path(row["log"]),
            identity=identity if pid else None,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise Invalid(Problem(str(path), f"is not a process record: {error!r}")) from error


def _set_limits(program: Program, pid: int) -> None:
    """Tell the kernel; a program that may not have them, or has ended, goes on without."""
    try:
        if program.nice:
            os.setpriority(os.PRIO_PROCESS, pid, program.nice)
        if program.oom_score_adj is not None:
            Path(f"/proc/{pid}/oom_score_adj").write_text(str(program.oom_score_adj))
    except OSError:
        return
