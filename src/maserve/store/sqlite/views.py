"""The tables of objects and their history: what lists and watches read of them."""

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from typing import Generic

from maserve.base.errors import Expired
from maserve.resource import R, decode
from maserve.store.paging import Query
from maserve.store.protocol import Change, ChangeType, Page

BATCH_CHANGES = 256
BATCH_BYTES = 4 * 1024 * 1024
"""A watch reads that much at once, so that a slow reader holds no more in memory."""

# Either what has not changed since that version, or what it was before its first change since.
_OBJECTS_AT = """
SELECT namespace, name, data FROM objects
  WHERE kind = :kind AND version <= :version AND (:namespace = '' OR namespace = :namespace)
    AND (namespace, name) > (:after_namespace, :after_name)
UNION ALL
SELECT namespace, name, before FROM history AS step
  WHERE kind = :kind AND version > :version AND (:namespace = '' OR namespace = :namespace)
    AND (namespace, name) > (:after_namespace, :after_name) AND before IS NOT NULL
    AND version = (
      SELECT min(version) FROM history AS other
      WHERE other.kind = step.kind AND other.namespace = step.namespace
        AND other.name = step.name AND other.version > :version
    )
ORDER BY 1, 2
"""

# The state after a step is the state before the next step of that object, or the object itself.
_CHANGES_AFTER = """
SELECT version, type, coalesce(
    last,
    (SELECT next.before FROM history AS next
      WHERE next.kind = step.kind AND next.namespace = step.namespace
        AND next.name = step.name AND next.version > step.version
      ORDER BY next.version LIMIT 1),
    (SELECT data FROM objects
      WHERE objects.kind = step.kind AND objects.namespace = step.namespace
        AND objects.name = step.name)
  )
FROM history AS step WHERE kind = ? AND version > ? ORDER BY version
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch(Generic[R]):
    """Changes in order; `upto` is where to go on, `is_last` says that nothing more is there yet."""

    changes: tuple[Change[R], ...]
    upto: int
    is_last: bool


def read_page(connection: sqlite3.Connection, query: Query[R]) -> Page[R]:
    """Return the page that `query` asks for. Raises `Expired`."""
    head = _head(connection)
    version = head if query.version is None else query.version
    _check_history(connection, query.kind.DESCRIPTOR.name, version, head)
    with closing(_objects_at(connection, query, version)) as rows:
        return query.page(rows, version=version, decode=lambda row: decode(query.kind, row[2]))


def read_changes(connection: sqlite3.Connection, kind: type[R], since: int) -> Batch[R]:
    """Return the changes after version `since`, a bounded part of them. Raises `Expired`."""
    head = _head(connection)
    name = kind.DESCRIPTOR.name
    _check_history(connection, name, since, head)
    changes: list[Change[R]] = []
    size = 0
    with closing(connection.execute(_CHANGES_AFTER, (name, since))) as rows:
        for version, step, data in rows:
            if len(changes) >= BATCH_CHANGES or size >= BATCH_BYTES:
                upto = int(changes[-1].version)
                return Batch(changes=tuple(changes), upto=upto, is_last=False)
            size += len(data)
            state = decode(kind, data)
            changes.append(Change(type=ChangeType(step), object=state, version=str(version)))
    return Batch(changes=tuple(changes), upto=head, is_last=True)


def _objects_at(connection: sqlite3.Connection, query: Query[R], version: int) -> sqlite3.Cursor:
    values = {
        "kind": query.kind.DESCRIPTOR.name,
        "version": version,
        "namespace": query.namespace,
        "after_namespace": query.after.namespace,
        "after_name": query.after.name,
    }
    return connection.execute(_OBJECTS_AT, values)


def _head(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT version FROM head").fetchone()[0])


def _check_history(connection: sqlite3.Connection, kind: str, version: int, head: int) -> None:
    if version > head:
        raise Expired(f"version {version} is newer than the store, which is at {head}; list again")
    row = connection.execute("SELECT version FROM trimmed WHERE kind = ?", (kind,)).fetchone()
    if row is not None and version < row[0]:
        raise Expired(
            f"version {version} of {kind} is older than the history, which begins after {row[0]}; "
            "list again"
        )
