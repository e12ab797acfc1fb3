"""Advisory locks between processes of one machine; a lock ends with the process that holds it."""

import fcntl
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from maserve.base.clock import Clock
from maserve.base.errors import Unavailable

_LOOK_S = 0.02
_SLOW_LOOK_S = 0.25
_QUICK_LOOKS = 50


@asynccontextmanager
async def locked(path: Path, clock: Clock, timeout_s: float | None = None) -> AsyncIterator[None]:
    """Hold the exclusive lock of the file `path`, which is made if missing; its folder is not.

    Waits without a thread, by looking again. Raises `Unavailable` after `timeout_s` (None: never)
    and when the file cannot be opened.
    """
    descriptor = await _acquired(path, clock, timeout_s)
    try:
        yield
    finally:
        os.close(descriptor)


async def _acquired(path: Path, clock: Clock, timeout_s: float | None) -> int:
    looks = 0
    began = clock.monotonic()
    while (descriptor := _try(path)) is None:
        if timeout_s is not None and clock.monotonic() - began >= timeout_s:
            raise Unavailable(f"the lock {path} was not free within {timeout_s:g} s")
        looks += 1
        await clock.sleep(_LOOK_S if looks < _QUICK_LOOKS else _SLOW_LOOK_S)
    return descriptor


def _try(path: Path) -> int | None:
    """Take the lock if it is free; None also when its file was replaced under us."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise Unavailable(f"cannot open the lock {path}: {error.strerror or error}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(descriptor), path.stat()):
            return descriptor
    except (BlockingIOError, FileNotFoundError):
        pass
    os.close(descriptor)
    return None
