"""Shared memory that programs leave behind when they are killed."""

from pathlib import Path

from maserve.host.files import remove_file

_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - where POSIX shared memory lives


def remove_shared_memory(prefix: str) -> int:
    """Remove the shared memory whose names begin with `prefix`; returns how many there were.

    Only for what no running program uses: the kernel gives no warning. Raises `Unavailable`.
    """
    if not prefix:
        raise ValueError("an empty prefix would remove everybody's shared memory")
    found = [path for path in _SHARED_MEMORY.glob("*") if path.name.startswith(prefix)]
    for path in found:
        remove_file(path)
    return len(found)
