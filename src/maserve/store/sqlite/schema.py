"""The file: its tables, its version, and opening it.

`history` holds, for every version, the state *before* that step: the state after it is the state
before the object's next step, or the object itself. So each state is kept once, and the objects
of any version that history reaches can be told. A deletion also has the object's `last` state,
which nothing else keeps. `trimmed` remembers per kind the last version that history has dropped.
"""

import sqlite3
from contextlib import closing
from pathlib import Path

from maserve.store.errors import Unusable
from maserve.store.sqlite.faults import damaged

APPLICATION_ID = 0x6D617376
"""`masv`; tells our files from other programs' databases."""

SCHEMA_VERSION = 1

_WAL_LIMIT_BYTES = 16 * 1024 * 1024

_TABLES = """
CREATE TABLE head (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  version INTEGER NOT NULL,
  history_bytes INTEGER NOT NULL
);
INSERT INTO head VALUES (1, 0, 0);
CREATE TABLE objects (
  id INTEGER PRIMARY KEY,
  kind TEXT NOT NULL,
  namespace TEXT NOT NULL,
  name TEXT NOT NULL,
  uid TEXT NOT NULL,
  version INTEGER NOT NULL,
  data BLOB NOT NULL,
  UNIQUE (kind, namespace, name)
);
CREATE UNIQUE INDEX objects_uid ON objects (uid, namespace);
CREATE TABLE owners (
  object INTEGER NOT NULL REFERENCES objects (id) ON DELETE CASCADE,
  uid TEXT NOT NULL,
  PRIMARY KEY (object, uid)
) WITHOUT ROWID;
CREATE INDEX owners_uid ON owners (uid);
CREATE TABLE history (
  version INTEGER PRIMARY KEY,
  kind TEXT NOT NULL,
  namespace TEXT NOT NULL,
  name TEXT NOT NULL,
  type TEXT NOT NULL,
  before BLOB,
  last BLOB
);
CREATE INDEX history_object ON history (kind, namespace, name, version);
CREATE INDEX history_kind ON history (kind, version);
CREATE TABLE trimmed (kind TEXT PRIMARY KEY, version INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE events (
  id INTEGER PRIMARY KEY,
  kind TEXT NOT NULL,
  namespace TEXT NOT NULL,
  name TEXT NOT NULL,
  uid TEXT NOT NULL,
  type TEXT NOT NULL,
  reason TEXT NOT NULL,
  message TEXT NOT NULL,
  source TEXT NOT NULL,
  count INTEGER NOT NULL,
  first_time REAL NOT NULL,
  last_time REAL NOT NULL,
  UNIQUE (kind, namespace, name, uid, type, reason, message)
);
CREATE INDEX events_namespace ON events (namespace, last_time);
"""


def open_file(path: Path, *, busy_timeout_s: float) -> sqlite3.Connection:
    """Open the file, making it if it is not there. To be called on the thread that will use it.

    Raises `Unusable` for a damaged, foreign or newer file, which is left as it was, and
    `sqlite3.Error` for what else goes wrong.
    """
    connection = sqlite3.connect(path, timeout=busy_timeout_s, isolation_level=None)
    try:
        if not _is_new(connection):
            _check(connection, str(path))
        _configure(connection)
        if _is_new(connection):
            _create(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _is_new(connection: sqlite3.Connection) -> bool:
    with closing(connection.execute("SELECT count(*) FROM sqlite_schema")) as rows:
        return int(rows.fetchone()[0]) == 0


def _check(connection: sqlite3.Connection, file: str) -> None:
    if _pragma(connection, "application_id") != APPLICATION_ID:
        raise Unusable(
            file=file, reason="is another program's database", remedy="name another file"
        )
    version = _pragma(connection, "user_version")
    if version != SCHEMA_VERSION:
        raise Unusable(
            file=file,
            reason=f"has schema version {version}, this program knows {SCHEMA_VERSION}",
            remedy="use the program that wrote it, or a newer one",
        )
    verdict = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if verdict != "ok":
        raise damaged(file, str(verdict).replace("\n", ", "))


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _configure(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    # FULL: an acknowledged write survives a power cut; NORMAL would lose the last ones in WAL mode.
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute(f"PRAGMA journal_size_limit = {_WAL_LIMIT_BYTES}")


def _create(connection: sqlite3.Connection) -> None:
    marks = f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {SCHEMA_VERSION};"
    connection.executescript(f"BEGIN IMMEDIATE; {_TABLES} {marks} COMMIT;")
