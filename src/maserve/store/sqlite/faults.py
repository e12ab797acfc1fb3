"""What SQLite's errors mean to a caller."""

import sqlite3

from maserve.base.errors import Error, Unavailable
from maserve.store.errors import Unusable

_RETRYABLE = {
    sqlite3.SQLITE_FULL: "the disk is full: free some space, nothing was written",
    sqlite3.SQLITE_IOERR: "the disk could not be read or written: check it and its free space",
    sqlite3.SQLITE_BUSY: "another program holds the file: end it, nothing was written",
    sqlite3.SQLITE_LOCKED: "another program holds the file: end it, nothing was written",
    sqlite3.SQLITE_CANTOPEN: "the file cannot be opened: check that its folder exists and is ours",
    sqlite3.SQLITE_READONLY: "the file cannot be written: check its permissions",
    sqlite3.SQLITE_PERM: "the file cannot be used: check its permissions",
}
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


def translate(error: sqlite3.Error, file: str) -> Error | None:
    """Return the error of ours that `error` stands for, None when it is a bug."""
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:
        return None
    primary = code & 0xFF
    if primary in _DAMAGED:
        return damaged(file, str(error))
    if primary in _RETRYABLE:
        return Unavailable(f"{file}: {_RETRYABLE[primary]} ({error})")
    return None


def damaged(file: str, detail: str) -> Unusable:
    """Return what is said of a file that is no sound database."""
    return Unusable(
        file=file,
        reason=f"is damaged or is no database ({detail})",
        remedy="it was left as it is: restore a copy, or move it and its -wal and -shm files away "
        "to start empty",
    )
