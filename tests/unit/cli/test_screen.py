"""Where text goes when the terminal, or the disk behind stdout, is not as usual."""

import errno
import io
import sys

import pytest

from maserve.cli.screen import OutputFailed, Screen


class Terminal(io.StringIO):
    """Says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def shown_on_a_terminal(monkeypatch: pytest.MonkeyPatch, kind: str) -> str:
    """Return what a wait of one step shows on a terminal of that kind."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", kind)
    monkeypatch.setenv("NO_COLOR", "1")
    with Screen().progress("Deployment ns/d") as show:
        show("PLACEMENT")
    return terminal.getvalue()


def test_progress_on_a_terminal_is_one_line_that_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = shown_on_a_terminal(monkeypatch, "xterm")
    assert "Deployment ns/d: PLACEMENT" in shown
    assert shown.endswith("\x1b[2K")


def test_progress_on_a_dumb_terminal_is_plain_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown_on_a_terminal(monkeypatch, "dumb") == "Deployment ns/d: PLACEMENT\n"


class Broken(io.StringIO):
    """Fails every write."""

    def __init__(self, error: OSError) -> None:
        super().__init__()
        self._error = error

    def write(self, text: str) -> int:
        del text
        raise self._error


def test_output_that_cannot_be_written_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    full = OSError(errno.ENOSPC, "No space left on device")
    monkeypatch.setattr(sys, "stdout", Broken(full))
    with pytest.raises(OutputFailed, match="cannot write the output: No space left on device"):
        Screen().out("text")


def test_a_reader_that_has_gone_is_no_error_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", Broken(BrokenPipeError(errno.EPIPE, "Broken pipe")))
    with pytest.raises(BrokenPipeError):
        Screen().out("text")


def test_characters_that_the_encoding_lacks_are_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii"))
    Screen().out("caf\u00e9")
    assert written.getvalue() == b"caf\\xe9\n"
