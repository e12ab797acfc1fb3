"""The demo's way to run commands and a control plane, with small programs in `maserve`'s place."""

import io
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from examples.demo.__main__ import clean_up
from examples.demo.claims import Claims, DemoError
from examples.demo.commands import Commands
from examples.demo.plane import ControlPlane, free_addresses
from examples.demo.screen import Screen
from examples.demo.traces import list_processes
from rich.console import Console

SERVES = """
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
print("12:00:00 ready  api here", flush=True)
signal.sigwait({signal.SIGTERM})
print("12:00:01 stopped", flush=True)
"""
REFUSES = 'print("error: data folder is in use"); raise SystemExit(1)'
ECHOES = 'import sys; print("args", *sys.argv[1:]); print("Thing a/b: step", file=sys.stderr)'
FAILS = 'import sys; print("error: no such thing", file=sys.stderr); sys.exit(3)'
ANSWERS_JSON = 'print(\'{"status": {"message": "well"}}\')'


class Shown:
    """A screen and what it shows."""

    def __init__(self) -> None:
        self._text = io.StringIO()
        self.screen = Screen(Console(file=self._text, highlight=False))

    def __str__(self) -> str:
        return self._text.getvalue()


@pytest.fixture
def shown() -> Shown:
    return Shown()


def commands_of(program: str, folder: Path, shown: Shown) -> Commands:
    return Commands(folder, {}, shown.screen, program=(sys.executable, "-c", program))


def plane_of(program: str, folder: Path, shown: Shown) -> ControlPlane:
    commands = commands_of(program, folder, shown)
    return ControlPlane(folder, free_addresses(), commands, shown.screen)


def test_command_is_shown_with_its_notes_and_what_it_prints(tmp_path: Path, shown: Shown) -> None:
    assert commands_of(ECHOES, tmp_path, shown).run("get 'two words'") == "args get two words"
    assert str(shown).splitlines() == [
        "  $ maserve get 'two words'",
        "    Thing a/b: step",
        "    args get two words",
    ]


def test_command_that_fails_ends_the_story_with_its_own_words(tmp_path: Path, shown: Shown) -> None:
    with pytest.raises(DemoError, match="maserve get: error: no such thing"):
        commands_of(FAILS, tmp_path, shown).run("get")


def test_object_is_read_without_being_shown(tmp_path: Path, shown: Shown) -> None:
    found = commands_of(ANSWERS_JSON, tmp_path, shown).get("deployment", "d", "n")
    assert found == {"status": {"message": "well"}}
    assert str(shown) == ""


def test_control_plane_is_ready_and_leaves_nothing(tmp_path: Path, shown: Shown) -> None:
    plane = plane_of(SERVES, tmp_path, shown)
    assert plane.start() == "ready  api here"
    assert len(list_processes(plane.data)) == 1
    plane.stop()
    assert list_processes(plane.data) == ()
    assert "12:00:01 stopped" in str(shown)


def test_control_plane_that_does_not_come_up_is_told_in_its_words(
    tmp_path: Path, shown: Shown
) -> None:
    plane = plane_of(REFUSES, tmp_path, shown)
    with pytest.raises(DemoError, match="not ready: error: data folder is in use"):
        plane.start()
    plane.stop()


@pytest.fixture
def signals() -> Iterator[None]:
    """Put the handlers back that a clean end takes away."""
    kept = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in kept.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("signals")
def test_logs_of_a_story_that_failed_are_kept(tmp_path: Path, shown: Shown) -> None:
    folder = tmp_path / "demo"
    folder.mkdir()
    claims = Claims(shown.screen)
    plane = plane_of(REFUSES, folder, shown)
    claims.broken("the story ended early")
    clean_up(plane, folder, shown.screen, claims)
    assert folder.exists()
    assert f"the logs are kept: maserve.log and others below {plane.data}" in str(shown)


@pytest.mark.usefixtures("signals")
def test_nothing_is_kept_of_a_story_that_held(tmp_path: Path, shown: Shown) -> None:
    folder = tmp_path / "demo"
    folder.mkdir()
    clean_up(plane_of(REFUSES, folder, shown), folder, shown.screen, Claims(shown.screen))
    assert not folder.exists()


def test_stopping_twice_or_before_the_start_does_nothing(tmp_path: Path, shown: Shown) -> None:
    plane = plane_of(SERVES, tmp_path, shown)
    plane.stop()
    plane.start()
    plane.stop()
    plane.stop()
    assert str(shown).count("SIGTERM") == 1
