"""What the demo says, and whether it was so."""

from typing import Protocol


class DemoError(Exception):
    """The story cannot go on; the text says why."""


class Teller(Protocol):
    """Shows one claim and how it turned out."""

    def claim(self, text: str, *, held: bool) -> None: ...


class Claims:
    """Every claim made, in order."""

    def __init__(self, screen: Teller) -> None:
        self._screen = screen
        self.told: list[str] = []
        self.failed: list[str] = []

    def check(self, text: str, held: bool) -> None:
        """Tell the claim; one that does not hold is remembered and the story goes on."""
        self.told.append(text)
        if not held:
            self.failed.append(text)
        self._screen.claim(text, held=held)

    def broken(self, text: str) -> None:
        """Note that the story ended early."""
        self.failed.append(text)

    @property
    def all_held(self) -> bool:
        return bool(self.told) and not self.failed
