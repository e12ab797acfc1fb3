"""Announcements: "something about this object moved, look again".

An announcement carries no state and may be lost or repeated; the listener looks at the world.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Signal(Generic[T]):
    """Calls every listener, in the order they came, with each announced value.

    Single-threaded: announce and subscribe on the event loop's thread. Listeners must not block.
    """

    def __init__(self) -> None:
        self._listeners: list[Callable[[T], None]] = []

    def subscribe(self, listener: Callable[[T], None]) -> Callable[[], None]:
        """Add a listener; the returned call removes it (safe to call twice)."""
        self._listeners.append(listener)

        def unsubscribe() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return unsubscribe

    def announce(self, value: T) -> None:
        """Tell every listener."""
        for listener in tuple(self._listeners):
            listener(value)
