"""Where text goes: results to stdout, progress and errors to stderr."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.status import Status
from rich.text import Text

from maserve.base.errors import Error

Progress = Callable[[str], None]
"""Shows how a long wait stands, in place of the last text; nothing when it is the same."""


class OutputFailed(Error):
    """The result cannot be written: a full disk and the like."""

    def __init__(self, cause: str) -> None:
        super().__init__(cause)
        self.cause = cause

    def __str__(self) -> str:
        return f"cannot write the output: {self.cause}"


class Screen:
    """Plain text, so that output can be piped: no wrapping, no markup."""

    def out(self, text: str) -> None:
        """Write a line of the result. Raises `OutputFailed`.

        Characters that the terminal's encoding does not have are written as escapes.
        """
        encoding = sys.stdout.encoding or "utf-8"
        try:
            sys.stdout.write(f"{text.encode(encoding, 'backslashreplace').decode(encoding)}\n")
            sys.stdout.flush()
        except BrokenPipeError:
            raise  # the reader has seen enough: the program ends without a word
        except OSError as error:
            raise OutputFailed(error.strerror or str(error)) from error

    def error(self, text: str) -> None:
        """Write the one line that says what went wrong."""
        self.note(f"error: {text}")

    def note(self, text: str) -> None:
        """Write a line that is not part of the result."""
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()

    @contextmanager
    def progress(self, what: str) -> Iterator[Progress]:
        """Show one changing line on a terminal; elsewhere one plain line a change."""
        console = Console(stderr=True, highlight=False)
        if not console.is_terminal or console.is_dumb_terminal:
            yield _Lines(self, what)
            return
        with console.status(Text(what)) as status:
            yield _Live(status, what)


class _Lines:
    def __init__(self, screen: Screen, what: str) -> None:
        self._screen = screen
        self._what = what
        self._last = ""

    def __call__(self, text: str) -> None:
        if text != self._last:
            self._last = text
            self._screen.note(f"{self._what}: {text}")


class _Live:
    def __init__(self, status: Status, what: str) -> None:
        self._status = status
        self._what = what

    def __call__(self, text: str) -> None:
        self._status.update(Text(f"{self._what}: {text}"))
