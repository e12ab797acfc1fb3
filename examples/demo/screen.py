"""What the demo shows: colours and a live line on a terminal, plain lines elsewhere."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.text import Text

STILL_S = 10.0
"""Without a terminal, how often a wait that says nothing new is heard of."""

WIDEST = 150

Progress = Callable[[str], None]


class Screen:
    """Writes to stdout; `console` may be given to write elsewhere."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(highlight=False)

    def title(self, text: str) -> None:
        self._print(f"\n{text}", "bold")

    def command(self, text: str) -> None:
        """Show a command as one would type it."""
        self._print(f"  $ {text}", "cyan")

    def out(self, text: str) -> None:
        """Show what a command printed, or a figure, indented."""
        for line in text.splitlines():
            self._print(f"    {line}", "dim" if not line.strip() else "")

    def claim(self, text: str, *, held: bool) -> None:
        mark, style = ("ok  ", "green") if held else ("FAIL", "bold red")
        self._print(f"  {mark} {text}", style)

    def fail(self, text: str) -> None:
        self._print(f"error: {text}", "bold red")

    @contextmanager
    def wait(self, what: str) -> Iterator[Progress]:
        """Show a wait; call the value with what is new, or with nothing new to tick."""
        started = time.monotonic()
        if self._console.is_terminal and not self._console.is_dumb_terminal:
            with self._console.status(Text(what)) as status:

                def live(text: str) -> None:
                    passed = time.monotonic() - started
                    status.update(Text(_short(f"{what} ({passed:.0f} s) {text}")))

                yield live
        else:
            yield _Lines(self, what, started)

    def line(self, text: str) -> None:
        self._print(f"    {_short(text)}", "dim")

    def _print(self, text: str, style: str = "") -> None:
        self._console.print(Text(text, style=style), soft_wrap=True)


class _Lines:
    """Progress without a terminal: a line for what is new, one now and then for what is not."""

    def __init__(self, screen: Screen, what: str, started: float) -> None:
        self._screen = screen
        self._what = what
        self._started = self._told = started
        self._last = ""

    def __call__(self, text: str) -> None:
        now = time.monotonic()
        is_new = bool(text) and text != self._last
        if not is_new and now - self._told < STILL_S:
            return
        self._told = now
        self._last = text or self._last
        passed = f"{self._what}, {now - self._started:.0f} s"
        self._screen.line(text if is_new else f"... {passed}")


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= WIDEST else f"{flat[: WIDEST - 3]}..."
