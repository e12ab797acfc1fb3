"""Who may act: the seam for leader election."""

from collections.abc import Awaitable, Callable
from typing import Protocol


class Leadership(Protocol):
    """Decides when this process may run controllers."""

    async def run(self, lead: Callable[[], Awaitable[None]]) -> None:
        """Wait to be elected, then await `lead()`; cancel it when leadership is lost, and return.

        `lead` runs until cancelled. A lease is no fence: writes are fenced by versions anyway.
        """
        ...


class AlwaysLeader:
    """Leads at once and for ever: there is only this process."""

    async def run(self, lead: Callable[[], Awaitable[None]]) -> None:
        await lead()
