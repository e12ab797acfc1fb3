"""Running `maserve` commands as a user does, and showing them."""

import json
import queue
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from examples.demo.claims import DemoError
from examples.demo.screen import Progress, Screen

PROGRAM = (sys.executable, "-m", "maserve.cmd.main")
TICK_S = 0.5
END_S = 10.0

_STATUS_LINE = re.compile(r"\w+ [\w.-]+/[\w.-]+: ")
"""How a line of progress begins: kind, namespace and name. Longer messages go on below it."""


class Commands:
    """Runs each command in `folder` with `environment`, which names the addresses."""

    def __init__(
        self,
        folder: Path,
        environment: Mapping[str, str],
        screen: Screen,
        program: Sequence[str] = PROGRAM,
    ) -> None:
        self.folder = folder
        self.environment = dict(environment)
        self._screen = screen
        self._program = tuple(program)

    def run(self, line: str) -> str:
        """Show the command and what it prints. Raises `DemoError` unless it ends well."""
        self._screen.command(f"maserve {line}")
        with self._screen.wait(f"maserve {line.split()[0]}") as progress:
            printed = self._run(line, progress)
        self._screen.out(printed)
        return printed

    def get(self, kind: str, name: str, namespace: str) -> dict[str, Any]:
        """Return an object as `maserve get -o json` shows it, without showing it."""
        printed = self._run(f"get {kind} {name} -n {namespace} -o json", lambda _: None)
        found: dict[str, Any] = json.loads(printed)
        return found

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        """Start a long-running command; its lines, errors included, come on its stdout."""
        return subprocess.Popen(
            [*self._program, *arguments],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def _run(self, line: str, progress: Progress) -> str:
        # A session of its own: Ctrl-C reaches the demo only, which then ends its commands.
        process = subprocess.Popen(
            [*self._program, *shlex.split(line)],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            printed, notes = _follow(process, progress)
        finally:
            end(process, END_S)
        if process.returncode != 0:
            said = "; ".join(notes[-3:]) or f"exit code {process.returncode}"
            raise DemoError(f"maserve {line}: {said}")
        return printed


def end(process: "subprocess.Popen[str]", timeout_s: float) -> None:
    """End a program if it still runs, and release what we hold of it."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()


class Lines:
    """The lines of a pipe, read by a thread of its own."""

    def __init__(self, pipe: IO[str]) -> None:
        self._queue: queue.Queue[str | None] = queue.Queue()
        self._is_over = False
        threading.Thread(target=self._read, args=(pipe,), name="demo-lines", daemon=True).start()

    def next(self, timeout_s: float = TICK_S) -> str | None:
        """Return a line, an empty one after a moment without any, None after the last."""
        if self._is_over:
            return None
        try:
            line = self._queue.get(timeout=timeout_s)
        except queue.Empty:
            return ""
        self._is_over = line is None
        return line

    def rest(self) -> list[str]:
        """Return all lines up to the last; waits for them."""
        return list(iter(lambda: self.next(END_S), None))

    def drop(self) -> None:
        """Forget the lines that are there now."""
        while not self._queue.empty():
            self.next()

    def _read(self, pipe: IO[str]) -> None:
        for line in pipe:
            self._queue.put(line.rstrip("\n"))
        self._queue.put(None)


def _follow(process: "subprocess.Popen[str]", progress: Progress) -> tuple[str, list[str]]:
    """Return everything a command printed and the notes it made, while showing the notes."""
    if process.stdout is None or process.stderr is None:
        raise DemoError("a command was started without its pipes")
    notes, printed = Lines(process.stderr), Lines(process.stdout)
    kept: list[str] = []
    while (note := notes.next()) is not None:
        if note:
            kept.append(note)
        progress(note if _STATUS_LINE.match(note) else "")
    process.wait()
    return "\n".join(printed.rest()), kept
