"""An event recorder that only remembers."""

from dataclasses import dataclass

from maserve.base.keys import Key
from maserve.resource.kinds import Resource, kind_of
from maserve.resource.metadata import key_of


@dataclass(frozen=True, slots=True)
class RecordedEvent:
    """One event as it was recorded."""

    type: str
    kind: str
    key: Key
    reason: str
    message: str


class FakeRecorder:
    """Keeps every event in `events`, oldest first."""

    def __init__(self) -> None:
        self.events: list[RecordedEvent] = []

    @property
    def reasons(self) -> list[str]:
        """The reasons alone, oldest first."""
        return [event.reason for event in self.events]

    def normal(self, resource: Resource, reason: str, message: str) -> None:
        self._record("Normal", resource, reason, message)

    def warning(self, resource: Resource, reason: str, message: str) -> None:
        self._record("Warning", resource, reason, message)

    def _record(self, type_: str, resource: Resource, reason: str, message: str) -> None:
        kind = kind_of(resource).name
        self.events.append(RecordedEvent(type_, kind, key_of(resource), reason, message))
