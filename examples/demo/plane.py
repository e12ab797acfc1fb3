"""A control plane of the demo's own: `maserve up` on free ports and a temporary data folder."""

import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from examples.demo.claims import DemoError
from examples.demo.commands import TICK_S, Commands, Lines, end
from examples.demo.screen import Screen
from examples.demo.traces import list_processes

LOOPBACK = "127.0.0.1"
READY_S = 60.0
STOP_S = 90.0

SETTINGS = """\
# The example models have a complete config.pbtxt: nothing is left for Triton to complete.
inferenceServer:
  triton:
    autoCompleteConfig: false
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    """Where one control plane listens, each as `host:port`."""

    api: str
    gateway: str
    metrics: str


def free_addresses() -> Addresses:
    """Return addresses on loopback that nobody listens on now."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(3)]
        for each in sockets:
            each.bind((LOOPBACK, 0))
        api, gateway, metrics = (f"{LOOPBACK}:{each.getsockname()[1]}" for each in sockets)
    return Addresses(api=api, gateway=gateway, metrics=metrics)


class ControlPlane:
    """Starts and stops it. `stop` may be called again and again."""

    def __init__(
        self, folder: Path, addresses: Addresses, commands: Commands, screen: Screen
    ) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.addresses = addresses
        self.commands = commands
        self._screen = screen
        self._process: subprocess.Popen[str] | None = None
        self._lines: Lines | None = None
        self._started = False

    def start(self) -> str:
        """Start it and return the line that says where it serves. Raises `DemoError`."""
        (self.folder / "settings.yaml").write_text(SETTINGS)
        self._started = True
        self._process = self.commands.start("up", *self._arguments())
        if self._process.stdout is None:
            raise DemoError("maserve up was started without its pipe")
        self._lines = Lines(self._process.stdout)
        said: list[str] = []
        with self._screen.wait("maserve up") as progress:
            for line in self._follow(self._lines, READY_S):
                if " ready " in line:
                    return line.partition(" ")[2]
                said += [line] if line else []
                progress("")
        raise DemoError(f"maserve up is not ready: {'; '.join(said[-3:]) or 'it says nothing'}")

    def stop(self) -> None:
        """Stop it gracefully, replicas first. Raises `DemoError` when something is left running."""
        if not self._started:
            return
        if self._process is not None and self._lines is not None:
            self._wait_for_end(self._process, self._lines)
        self._process = None
        if list_processes(self.data):
            self.commands.run(f"down --data-dir {self.data}")
        self._started = False

    def _arguments(self) -> Sequence[str]:
        return (
            f"--data-dir={self.data}",
            f"--api-address={self.addresses.api}",
            f"--gateway-address={self.addresses.gateway}",
            f"--metrics-address={self.addresses.metrics}",
            f"--config={self.folder / 'settings.yaml'}",
        )

    def _wait_for_end(self, process: "subprocess.Popen[str]", lines: Lines) -> None:
        if process.poll() is None:
            self._screen.command("maserve up: SIGTERM")
            lines.drop()  # what moved until now was shown by the commands
            process.terminate()
        with self._screen.wait("maserve up stops") as progress:
            for line in self._follow(lines, STOP_S):
                progress(line)
        end(process, 5.0)

    def _follow(self, lines: Lines, longest_s: float) -> Iterator[str]:
        """Yield lines, empty ones while there are none, until the last or for so long."""
        for _ in range(round(longest_s / TICK_S)):
            line = lines.next()
            if line is None:
                return
            yield line
