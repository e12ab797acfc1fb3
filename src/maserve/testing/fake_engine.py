"""An Engine that starts a program with Triton's HTTP interface that loads in no time."""

import sys
from dataclasses import dataclass

from maserve.backends.triton.local import Command, EngineLaunch
from maserve.testing import fake_engine_grpc, fake_engine_program


@dataclass
class FakeEngine:
    """Starts the fake program instead of Triton. `problem` makes `prepare` fail while it is set.

    `with_grpc` starts the one that the real model-sync can load models on.
    """

    version: str = "fake-1"
    with_grpc: bool = False
    problem: Exception | None = None

    async def prepare(self) -> str:
        if self.problem is not None:
            raise self.problem
        return self.version

    def command(self, launch: EngineLaunch) -> Command:
        """Return the command line of the fake program."""
        if self.with_grpc:
            ports = (str(launch.http_port), str(launch.grpc_port))
            program = (sys.executable, "-m", fake_engine_grpc.__name__)
            return Command(argv=(*program, *ports, str(launch.repository)), env={})
        script = (sys.executable, "-I", "-S", fake_engine_program.__file__)
        return Command(argv=(*script, str(launch.http_port), str(launch.repository)), env={})
