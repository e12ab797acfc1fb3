"""Prints every event as one line while it is recorded, so that a person sees what moves."""

from collections.abc import Callable

from maserve.base.keys import Key
from maserve.resource import Resource, key_of, kind_of
from maserve.runtime import EventRecorder

REMEMBERED = 1000
"""Of so many objects it is known what they said last: names come and go for as long as we run."""

Say = Callable[[str], None]
"""Prints one line for a person."""


class Teller:
    """Holds the way to print, so that wiring can hand it on by type."""

    def __init__(self, say: Say) -> None:
        self.say = say


class TellingRecorder:
    """Records events as `inner` does, and tells them; what an object said last is not repeated."""

    def __init__(self, inner: EventRecorder, teller: Teller) -> None:
        self._inner = inner
        self._teller = teller
        self._last: dict[tuple[str, Key], str] = {}

    def normal(self, resource: Resource, reason: str, message: str) -> None:
        self._inner.normal(resource, reason, message)
        self._tell(resource, reason, message)

    def warning(self, resource: Resource, reason: str, message: str) -> None:
        self._inner.warning(resource, reason, message)
        self._tell(resource, f"warning {reason}", message)

    def _tell(self, resource: Resource, reason: str, message: str) -> None:
        kind, key = kind_of(resource).name, key_of(resource)
        text = f"{reason}: {' '.join(message.split())}"
        known = self._last.pop((kind, key), None)
        self._last[kind, key] = text
        if len(self._last) > REMEMBERED:
            del self._last[next(iter(self._last))]
        if known != text:
            self._teller.say(f"{kind} {key}: {text}")
