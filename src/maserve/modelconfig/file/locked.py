"""The lock beside a model list: whoever changes the list, or acts on what it lacks, holds it."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from maserve.base.errors import NotFound, Unavailable


@contextmanager
def locked_list(path: Path) -> Iterator[None]:
    """Hold the lock of the list at `path`, waiting for it; blocks the thread.

    The lock file is `model-list.json.lock` beside the list. Raises `NotFound` when there is no such
    folder, `Unavailable` naming a lock file that cannot be used.
    """
    with _held(path, fcntl.LOCK_EX):
        yield


@contextmanager
def locked_list_now(path: Path) -> Iterator[None]:
    """Hold the lock like `locked_list`, but raise `BlockingIOError` when somebody else has it."""
    with _held(path, fcntl.LOCK_EX | fcntl.LOCK_NB):
        yield


def lock_path(path: Path) -> Path:
    """Return the lock file of a list."""
    return path.with_name(f"{path.name}.lock")


@contextmanager
def _held(path: Path, operation: int) -> Iterator[None]:
    descriptor = _open(lock_path(path))
    try:
        fcntl.flock(descriptor, operation)
        while not _is_current(lock_path(path), descriptor):
            os.close(descriptor)  # the holder before us has removed it together with the list
            descriptor = _open(lock_path(path))
            fcntl.flock(descriptor, operation)
        yield
    finally:
        os.close(descriptor)


def _open(lock: Path) -> int:
    try:
        return os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotFound("model config", lock.parent) from error
    except OSError as error:
        raise Unavailable(f"cannot lock {lock}: {error.strerror or error}") from error


def _is_current(lock: Path, descriptor: int) -> bool:
    try:
        found = lock.stat()
    except OSError:
        return False
    held = os.fstat(descriptor)
    return (found.st_dev, found.st_ino) == (held.st_dev, held.st_ino)
