"""Telling people what happened to an object, at a bounded rate, never failing a reconcile."""

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from typing import Protocol, TypeVar

import structlog

from maserve.base.clock import Clock
from maserve.base.errors import Error
from maserve.base.keys import Key
from maserve.resource.kinds import Resource, kind_of
from maserve.resource.metadata import key_of
from maserve.store.events import EventLog

NORMAL = "Normal"
WARNING = "Warning"

M = TypeVar("M")
V = TypeVar("V")

_log = structlog.get_logger()


class EventRecorder(Protocol):
    """Takes note of what a person may want to know. Never blocks, never raises."""

    def normal(self, resource: Resource, reason: str, message: str) -> None:
        """Record something expected; `reason` is a CamelCase token."""
        ...

    def warning(self, resource: Resource, reason: str, message: str) -> None:
        """Record something that someone may have to look at."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class EventSettings:
    """How much is written.

    An event equal to its object's last one is not written again within `repeat_s`; after another
    one it is: a stage that is left and entered again has happened twice. One object may have
    `burst` events at once, then one every `refill_s`. Beyond `pending` unwritten ones the newest is
    lost.
    """

    repeat_s: float = 10.0
    burst: int = 25
    refill_s: float = 10.0
    pending: int = 1000
    remembered: int = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class _Event:
    kind: str
    key: Key
    uid: str
    type: str
    reason: str
    message: str


class LoggingRecorder:
    """Writes events to the store's log from a part of its own; what it cannot write is lost."""

    def __init__(
        self, log: EventLog, *, source: str, clock: Clock, settings: EventSettings
    ) -> None:
        self._events = log
        self._source = source
        self._clock = clock
        self._settings = settings
        self._pending: list[_Event] = []
        self._last: OrderedDict[str, tuple[_Event, float]] = OrderedDict()
        self._budget: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._wake = asyncio.Event()

    def normal(self, resource: Resource, reason: str, message: str) -> None:
        self._record(resource, NORMAL, reason, message)

    def warning(self, resource: Resource, reason: str, message: str) -> None:
        self._record(resource, WARNING, reason, message)

    async def run(self) -> None:
        """Write until cancelled, then what is left."""
        try:
            while True:
                await self._wake.wait()
                await self.flush()
        finally:
            await self.flush()

    async def flush(self) -> None:
        """Write every event recorded so far."""
        self._wake.clear()
        while self._pending:
            await self._write(self._pending.pop(0))

    def _record(self, resource: Resource, type_: str, reason: str, message: str) -> None:
        event = _Event(
            kind=kind_of(resource).name,
            key=key_of(resource),
            uid=resource.metadata.uid,
            type=type_,
            reason=reason,
            message=message,
        )
        if self._is_repeated(event) or not self._has_budget(event.uid):
            return
        if len(self._pending) < self._settings.pending:
            self._pending.append(event)
            self._wake.set()

    def _is_repeated(self, event: _Event) -> bool:
        now_s = self._clock.monotonic()
        last, last_s = self._last.get(event.uid, (None, 0.0))
        if last == event and now_s - last_s < self._settings.repeat_s:
            return True
        _remember(self._last, event.uid, (event, now_s), limit=self._settings.remembered)
        return False

    def _has_budget(self, uid: str) -> bool:
        """Take one of the object's tokens, which grow back with time."""
        burst = float(self._settings.burst)
        now_s = self._clock.monotonic()
        tokens, since_s = self._budget.get(uid, (burst, now_s))
        tokens = min(burst, tokens + (now_s - since_s) / self._settings.refill_s)
        allowed = tokens >= 1
        left = (tokens - 1 if allowed else tokens, now_s)
        _remember(self._budget, uid, left, limit=self._settings.remembered)
        return allowed

    async def _write(self, event: _Event) -> None:
        try:
            await self._events.record(
                event.kind,
                event.key,
                uid=event.uid,
                type=event.type,
                reason=event.reason,
                message=event.message,
                source=self._source,
            )
        except Error as error:
            _log.warning("event lost", key=str(event.key), reason=event.reason, error=str(error))


def _remember(memory: OrderedDict[M, V], key: M, value: V, *, limit: int) -> None:
    memory[key] = value
    memory.move_to_end(key)
    if len(memory) > limit:
        memory.popitem(last=False)
