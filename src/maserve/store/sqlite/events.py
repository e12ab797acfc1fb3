"""`EventLog` in the store's file."""

import sqlite3
from datetime import UTC, datetime
from typing import Any

from maserve.base.clock import Clock
from maserve.base.keys import Key
from maserve.store.events import EventRow
from maserve.store.sqlite.database import Database, Transaction
from maserve.store.sqlite.settings import StoreSettings

_RECORD = """
INSERT INTO events
  (kind, namespace, name, uid, type, reason, message, source, count, first_time, last_time)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, 1, ?, ?)
  ON CONFLICT (kind, namespace, name, uid, type, reason, message)
  DO UPDATE SET count = count + 1, last_time = excluded.last_time, source = excluded.source
"""

_TRIM_OBJECT = """
DELETE FROM events WHERE id IN (
  SELECT id FROM events WHERE kind = ? AND namespace = ? AND name = ?
  ORDER BY last_time DESC, id DESC LIMIT -1 OFFSET ?
)
"""

_TRIM_NAMESPACE = """
DELETE FROM events WHERE id IN (
  SELECT id FROM events WHERE namespace = ?
  ORDER BY last_time DESC, id DESC LIMIT -1 OFFSET ?
)
"""

_LIST = """
SELECT uid, type, reason, message, source, count, first_time, last_time FROM events
WHERE kind = ? AND namespace = ? AND name = ? ORDER BY last_time, id
"""


class SqliteEventLog:
    """Events of every object, some per object and some per namespace (`StoreSettings`)."""

    def __init__(self, database: Database, *, clock: Clock, settings: StoreSettings) -> None:
        self._database = database
        self._clock = clock
        self._settings = settings

    async def record(
        self,
        kind: str,
        key: Key,
        *,
        uid: str,
        type: str,  # noqa: A002 - the word of Kubernetes
        reason: str,
        message: str,
        source: str,
    ) -> None:
        now = self._clock.now().timestamp()
        place = (kind, key.namespace, key.name)

        def work(transaction: Transaction) -> None:
            execute = transaction.connection.execute
            execute(_RECORD, (*place, uid, type, reason, message, source, now, now))
            execute(_TRIM_OBJECT, (*place, self._settings.events_per_object))
            execute(_TRIM_NAMESPACE, (key.namespace, self._settings.events_per_namespace))

        await self._database.write(work)

    async def list(self, kind: str, key: Key) -> tuple[EventRow, ...]:
        def work(view: Transaction) -> tuple[EventRow, ...]:
            rows = view.connection.execute(_LIST, (kind, key.namespace, key.name))
            return tuple(_event(kind, key, row) for row in rows)

        return await self._database.read(work)


def _event(kind: str, key: Key, row: sqlite3.Row | tuple[Any, ...]) -> EventRow:
    uid, type_, reason, message, source, count, first_time, last_time = row
    return EventRow(
        kind=kind,
        key=key,
        uid=uid,
        type=type_,
        reason=reason,
        message=message,
        source=source,
        count=count,
        first_time=datetime.fromtimestamp(first_time, UTC),
        last_time=datetime.fromtimestamp(last_time, UTC),
    )
