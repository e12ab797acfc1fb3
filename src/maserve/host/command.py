"""Short commands that are waited for."""

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass

from maserve.base.errors import Unavailable


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """What a command said; `output` is both streams together."""

    code: int
    output: str


def run_command(
    argv: tuple[str, ...], *, env: Mapping[str, str], timeout_s: float
) -> CommandResult:
    """Run a command to its end and return what it said. Blocks; call it from a `Worker`.

    Raises `Unavailable` when it cannot be started or takes too long.
    """
    try:
        done = subprocess.run(
            argv,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=timeout_s,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"cannot run {argv[0]}: {error}") from error
    return CommandResult(code=done.returncode, output=done.stdout.decode(errors="replace"))
