"""What a data folder's programs leave on the machine: processes, files, shared memory."""

import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_SHARED_MEMORY = "/dev/shm/"

_KINDS = (
    ("triton_python_backend_stub", "model process"),
    ("tritonserver", "Triton"),
    ("envoy", "Envoy"),
    ("maserve.cmd.modelsync", "model-sync"),
)
CONTROL_PLANE = "control plane"


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process that was started with a path below the folder."""

    pid: int
    kind: str


def list_processes(folder: Path) -> tuple[Process, ...]:
    """Return every process but this one whose command line names the folder, by pid."""
    found = []
    for entry in _PROC.iterdir():
        if not entry.name.isdecimal() or int(entry.name) == os.getpid():
            continue
        try:
            words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if any(str(folder) in word for word in words):
            found.append(Process(pid=int(entry.name), kind=kind_of(words)))
    return tuple(sorted(found, key=lambda each: each.pid))


def kind_of(words: list[str]) -> str:
    """Return what a command line is, in a person's words."""
    program = Path(words[0]).name
    for mark, kind in _KINDS:
        if program == mark or mark in words[1:3]:
            return kind
    return CONTROL_PLANE


def count_kinds(processes: Iterable[Process]) -> str:
    """Return `4 Triton, 4 model-sync, 1 Envoy`, or `none`."""
    counts = Counter(each.kind for each in processes)
    order = [kind for _, kind in _KINDS] + [CONTROL_PLANE]
    return ", ".join(f"{counts[kind]} {kind}" for kind in order if counts[kind]) or "none"


def list_shared_memory(processes: Iterable[Process]) -> tuple[Path, ...]:
    """Return the shared memory those processes have mapped, by name."""
    found = set()
    for process in processes:
        try:
            rows = (_PROC / str(process.pid) / "maps").read_text().splitlines()
        except OSError:
            continue
        names = (row.split(maxsplit=5)[-1] for row in rows if _SHARED_MEMORY in row)
        found |= {Path(name.removesuffix(" (deleted)")) for name in names}
    return tuple(sorted(found))


def list_files(folder: Path) -> tuple[Path, ...]:
    """Return the files below a folder, by path; nothing when it is not there."""
    return tuple(sorted(path for path in folder.rglob("*") if not path.is_dir()))
