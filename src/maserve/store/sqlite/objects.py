"""The tables of objects and their history: a shelf for writes."""

import sqlite3
from dataclasses import dataclass
from typing import Any

from maserve.base.keys import Key
from maserve.resource import API_VERSION, KINDS, R, Resource, decode, key_of, kind_of
from maserve.store.protocol import ChangeType
from maserve.store.sqlite.database import Transaction
from maserve.store.sqlite.settings import StoreSettings

_CLASSES: dict[str, type[Resource]] = {kind.name: kind.message for kind in KINDS}

_FIND = "SELECT data FROM objects WHERE kind = ? AND namespace = ? AND name = ?"

_REMOVE = "DELETE FROM objects WHERE kind = ? AND namespace = ? AND name = ?"

_PUT = """
INSERT INTO objects (kind, namespace, name, uid, version, data) VALUES (?, ?, ?, ?, ?, ?)
  ON CONFLICT (kind, namespace, name)
  DO UPDATE SET uid = excluded.uid, version = excluded.version, data = excluded.data
RETURNING id
"""

_DEPENDENTS = """
SELECT kind, namespace, name FROM owners JOIN objects ON objects.id = owners.object
WHERE owners.uid = ? AND namespace = ? ORDER BY kind, name
"""

_ORPHANS = """
SELECT kind, namespace, name FROM objects
WHERE EXISTS (SELECT 1 FROM owners WHERE owners.object = objects.id)
  AND NOT EXISTS (
    SELECT 1 FROM owners JOIN objects AS owner ON owner.uid = owners.uid
    WHERE owners.object = objects.id AND owner.namespace = objects.namespace
  )
ORDER BY kind, namespace, name
"""

_DROP_OLDEST = """
DELETE FROM history WHERE version = (SELECT min(version) FROM history)
RETURNING version, kind, coalesce(length(before), 0) + coalesce(length(last), 0)
"""

_NOTE_DROPPED = """
INSERT INTO trimmed (kind, version) VALUES (?, ?)
  ON CONFLICT (kind) DO UPDATE SET version = excluded.version
"""

_Place = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class ObjectShelf:
    """`store.shelf.Shelf` on an open write transaction."""

    transaction: Transaction
    settings: StoreSettings

    def find(self, kind: type[R], key: Key) -> R | None:
        return find_object(self.transaction.connection, kind, key)

    def put(self, resource: Resource, *, is_new: bool) -> None:
        place = _place(resource)
        version = self._next_version(resource)
        before = None if is_new else self._data(place)
        data = resource.SerializeToString()
        (identity,) = self._one(_PUT, *place, resource.metadata.uid, version, data)
        self._set_owners(identity, resource)
        step = ChangeType.ADDED if is_new else ChangeType.MODIFIED
        self._remember(version, place, step, before=before)

    def remove(self, resource: Resource) -> None:
        place = _place(resource)
        version = self._next_version(resource)
        before = self._data(place)
        self._execute(_REMOVE, *place)
        last = resource.SerializeToString()
        self._remember(version, place, ChangeType.DELETED, before=before, last=last)

    def list_dependents(self, namespace: str, uid: str) -> tuple[tuple[type[Resource], Key], ...]:
        return _keys(self._execute(_DEPENDENTS, uid, namespace))

    def list_orphans(self) -> tuple[tuple[type[Resource], Key], ...]:
        """Return the objects none of whose owners is here; some may have owners kept elsewhere."""
        return _keys(self._execute(_ORPHANS))

    def has_uid(self, namespace: str, uid: str) -> bool:
        query = "SELECT 1 FROM objects WHERE uid = ? AND namespace = ?"
        return self._execute(query, uid, namespace).fetchone() is not None

    def _next_version(self, resource: Resource) -> int:
        (version,) = self._one("UPDATE head SET version = version + 1 RETURNING version")
        resource.metadata.resourceVersion = str(version)
        return int(version)

    def _data(self, place: _Place) -> bytes:
        return bytes(self._one(_FIND, *place)[0])

    def _set_owners(self, identity: int, resource: Resource) -> None:
        self._execute("DELETE FROM owners WHERE object = ?", identity)
        for owner in resource.metadata.ownerReferences:
            if owner.apiVersion == API_VERSION:
                query = "INSERT OR IGNORE INTO owners (object, uid) VALUES (?, ?)"
                self._execute(query, identity, owner.uid)

    def _remember(
        self,
        version: int,
        place: _Place,
        step: ChangeType,
        *,
        before: bytes | None,
        last: bytes | None = None,
    ) -> None:
        self._execute(
            "INSERT INTO history (version, kind, namespace, name, type, before, last) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            *(version, *place, step.value, before, last),
        )
        self.transaction.changed.add(place[0])
        self._count(len(before or b"") + len(last or b""))
        self._trim(version)

    def _trim(self, head: int) -> None:
        limit = self.settings.history_bytes
        (size,) = self._one("SELECT history_bytes FROM head")
        (oldest,) = self._one("SELECT min(version) FROM history")
        while oldest is not None and (
            size > limit or oldest <= head - self.settings.history_changes
        ):
            version, kind, freed = self._one(_DROP_OLDEST)
            self._execute(_NOTE_DROPPED, kind, version)
            size = self._count(-freed)
            (oldest,) = self._one("SELECT min(version) FROM history")

    def _count(self, size: int) -> int:
        query = "UPDATE head SET history_bytes = history_bytes + ? RETURNING history_bytes"
        return int(self._one(query, size)[0])

    def _one(self, query: str, *values: object) -> Any:
        return self._execute(query, *values).fetchone()

    def _execute(self, query: str, *values: Any) -> sqlite3.Cursor:
        return self.transaction.connection.execute(query, values)


def find_object(connection: sqlite3.Connection, kind: type[R], key: Key) -> R | None:
    """Return the newest state of an object, None when it is not there."""
    row = connection.execute(_FIND, (kind.DESCRIPTOR.name, key.namespace, key.name)).fetchone()
    return None if row is None else decode(kind, row[0])


def _place(resource: Resource) -> _Place:
    key = key_of(resource)
    return kind_of(resource).name, key.namespace, key.name


def _keys(rows: sqlite3.Cursor) -> tuple[tuple[type[Resource], Key], ...]:
    return tuple((_CLASSES[kind], Key(namespace, name)) for kind, namespace, name in rows)
