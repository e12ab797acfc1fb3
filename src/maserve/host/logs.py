"""Log files of supervised programs: bounded, and readable from their end."""

import os
from contextlib import suppress
from io import TextIOBase
from pathlib import Path
from typing import TextIO, cast

_BLOCK = 64 * 1024


def tail_log(path: Path, lines: int) -> tuple[str, ...]:
    """Return the last `lines` lines, oldest first; empty when there is no such file.

    Reads no more of the file than those lines need, with a bound of 1 KiB a line on average.
    """
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - max(_BLOCK, lines * 1024)))
            data = file.read()
    except OSError:
        return ()
    return tuple(data.decode(errors="replace").splitlines()[-lines:]) if lines > 0 else ()


def read_log_from(path: Path, offset: int, limit_bytes: int = _BLOCK) -> str:
    """Return the last `limit_bytes` written after `offset`; of all when the file was cut since."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            start = offset if offset <= size else 0
            file.seek(max(start, size - limit_bytes))
            return file.read().decode(errors="replace")
    except OSError:
        return ""


def log_size_bytes(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def cap_log(path: Path, limit_bytes: int) -> bool:
    """Move the content to `<name>.1` once it is larger than `limit_bytes`; tells whether it did.

    Copies and truncates, because the writer keeps its descriptor (opened for appending). Lines
    written between the two steps are lost; that is the price of not signalling the writer. Where
    there is no space for the copy there is none: a full disk must not keep the log that fills it.
    """
    if log_size_bytes(path) <= limit_bytes:
        return False
    old = path.with_name(f"{path.name}.1")
    try:
        _copy_end(path, old, limit_bytes)
    except OSError:
        old.unlink(missing_ok=True)
    os.truncate(path, 0)
    return True


def lossy(descriptor: int) -> TextIO:
    """Return a file for log lines: those that a full disk refuses are lost, and nothing else is."""
    return cast(TextIO, _Lossy(descriptor))


def _copy_end(path: Path, copy: Path, limit_bytes: int) -> None:
    with path.open("rb") as source, copy.open("wb") as target:
        source.seek(-limit_bytes, os.SEEK_END)
        while block := source.read(_BLOCK):
            target.write(block)


class _Lossy(TextIOBase):
    """Keeps nothing back: what could not be written must not fail the next write, or the end."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def write(self, text: str) -> int:
        with suppress(OSError):
            os.write(self._descriptor, text.encode(errors="replace"))
        return len(text)
