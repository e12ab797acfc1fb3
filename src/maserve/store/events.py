"""The port to the recent past of an object, as people read it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from maserve.base.keys import Key


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRow:
    """One thing that happened to an object, `count` times from `first_time` to `last_time`.

    `type` is `Normal` or `Warning`, `reason` a CamelCase token, `source` who says so.
    """

    kind: str
    key: Key
    uid: str
    type: str
    reason: str
    message: str
    source: str
    count: int
    first_time: datetime
    last_time: datetime


class EventLog(Protocol):
    """A bounded log of events; the oldest go first. Losing one costs nothing but its telling."""

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
        """Add an event; one equal in uid, type, reason and message is counted instead."""
        ...

    async def list(self, kind: str, key: Key) -> tuple[EventRow, ...]:
        """Return the events of an object, of earlier ones of its name too, newest last."""
        ...
