"""The only reader of time. Everybody else takes a `Clock`."""

import asyncio
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Wall time, a monotonic counter and a sleep, replaceable as one."""

    def now(self) -> datetime:
        """Return the aware UTC wall time; it may jump."""
        ...

    def monotonic(self) -> float:
        """Return seconds of a counter that never goes back; only differences mean something."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds` of this clock; zero or less yields once."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(0.0, seconds))
