"""Watches every write of a control plane and makes one of them go wrong.

A crash is a `BaseException`, so that nothing in the control plane can catch it, and after it no
write of that control plane gets through any more.
"""

from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Any, TypeVar, cast

P = TypeVar("P")

WRITES = frozenset(
    {
        "create",
        "update",
        "update_status",
        "delete",
        "create_server",
        "delete_server",
        "create_model_config",
        "delete_model_config",
        "add_model_to_config",
        "remove_model_from_config",
        "add_rules",
        "remove_rules",
        "sync",
    }
)
"""The names of all writing methods of all ports."""


class Crash(BaseException):
    """The process was killed."""


class Fault(StrEnum):
    """What happens at the chosen write."""

    NONE = "none"
    CRASH_BEFORE = "crash before"
    CRASH_AFTER = "crash after"
    ERROR_BEFORE = "error before"
    ERROR_AFTER = "error after"


class Tap:
    """Sits between a control plane and its ports. `count` is the number of writes so far.

    `at` counts from 1. `error` is raised by the two ERROR faults. `check` is called after each
    write, `witness` wherever a crash could strike: before each write and after it.
    """

    def __init__(
        self,
        check: Callable[[str], None],
        *,
        fault: Fault = Fault.NONE,
        at: int = 0,
        error: Exception | None = None,
        meanwhile: Callable[[], Awaitable[None]] | None = None,
        witness: Callable[[Fault], None] = lambda _: None,
    ) -> None:
        self.count = 0
        self.names: list[str] = []
        self.dead = False
        self.check = check
        self._fault = fault
        self._at = at
        self._error = error
        self._meanwhile = meanwhile
        self._witness = witness

    def on(self, port: P) -> P:
        """Return the port with its writes watched."""
        return cast(P, _Watched(port, self))

    async def write(self, name: str, call: Callable[[], Awaitable[Any]]) -> Any:
        """Do one write, or what the fault makes of it."""
        if self.dead:
            raise Crash
        self.count += 1
        number = self.count
        self.names.append(name)
        self._strike(number, Fault.CRASH_BEFORE, Fault.ERROR_BEFORE)
        result = await call()
        if self.dead:
            raise Crash
        self.check(f"write {number} ({name})")
        if number == self._at and self._meanwhile is not None:
            await self._meanwhile()
        self._strike(number, Fault.CRASH_AFTER, Fault.ERROR_AFTER)
        return result

    def _strike(self, number: int, crash: Fault, error: Fault) -> None:
        self._witness(crash)
        if number != self._at:
            return
        if self._fault is crash:
            self.dead = True
            raise Crash
        if self._fault is error and self._error is not None:
            raise self._error


class _Watched:
    """A port whose writing methods go through a tap; everything else passes."""

    def __init__(self, port: object, tap: Tap) -> None:
        self._port = port
        self._tap = tap

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._port, name)
        if name not in WRITES:
            return found

        async def write(*args: Any, **kwargs: Any) -> Any:
            label = f"{type(self._port).__name__}.{name}"
            return await self._tap.write(label, lambda: found(*args, **kwargs))

        return write
