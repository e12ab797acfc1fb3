"""Constant load while something moves: the open-loop generator as a process of its own."""

import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from examples.demo.claims import DemoError
from examples.demo.commands import Lines, end

from maserve.testing.load_results import LoadSummary

START_S = 30.0
END_S = 30.0
LONGEST_S = 600


class Load:
    """Sends from `with` on; `finish` stops it and returns what came of it."""

    def __init__(self, url: str, body: Path, rate_per_s: int) -> None:
        self._argv = [
            sys.executable,
            "-m",
            "maserve.testing.load",
            url,
            f"--body={body}",
            f"--rate={rate_per_s}",
            f"--seconds={LONGEST_S}",
        ]
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        if self._process.stderr is None:
            raise DemoError("the load was started without its pipe")
        first = Lines(self._process.stderr).next(START_S)
        if first is None or not first.startswith("started"):
            raise DemoError(f"the load did not start: {first or 'it says nothing'}")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process is not None:
            end(self._process, END_S)

    def finish(self) -> LoadSummary:
        """Send nothing more, wait for the answers that are under way, and count."""
        process = self._process
        if process is None or process.stdout is None:
            raise DemoError("the load is not running")
        process.send_signal(signal.SIGTERM)
        printed = process.stdout.read()
        process.wait(END_S)
        return LoadSummary.from_json(printed)
