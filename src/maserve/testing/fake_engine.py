"""An Engine that starts a program with Triton's HTTP interface that loads in no time."""

import sys
from dataclasses import dataclass

from maserve.backends.triton.local import Command, EngineLaunch
from maserve.testing import fake_engine_program


@dataclass
class FakeEngine:
    """Starts the fake program instead of Triton. `problem` makes `prepare` fail while it is set."""

    version: str = "fake-1"
    problem: Exception | None = None

    async def prepare(self) -> str:
        if self.problem is not None:
            raise self.problem
        return self.version

    def command(self, launch: EngineLaunch) -> Command:
        """Return the command line of the fake program."""
        script = (sys.executable, "-I", "-S", fake_engine_program.__file__)
        return Command(argv=(*script, str(launch.http_port), str(launch.repository)), env={})
