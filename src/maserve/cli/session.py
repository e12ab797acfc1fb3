"""One run of a command: connect, work, turn what went wrong into a line and an exit code."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum

import typer

from maserve.base.errors import (
    Conflict,
    Error,
    Exists,
    Expired,
    Invalid,
    NotFound,
    Unavailable,
    Unsupported,
)
from maserve.cli.api import Api, Outside
from maserve.cli.screen import Screen


class Exit(IntEnum):
    """Exit codes. typer, too, ends with 2 for a wrong command line."""

    OK = 0
    FAILED = 1
    TIMEOUT = 2
    USAGE = 2
    INTERRUPTED = 130


class CommandError(Error):
    """A command cannot go on; each line is for the user and says what to do next."""

    def __init__(self, text: str, code: Exit = Exit.FAILED) -> None:
        super().__init__(text)
        self.text = text
        self.code = code

    def __str__(self) -> str:
        return self.text


@contextmanager
def of_command_line() -> Iterator[None]:
    """Raise what is wrong with a word of the command line as `CommandError`."""
    try:
        yield
    except (Invalid, Unsupported) as error:
        raise CommandError(str(error), Exit.USAGE) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """What every command gets: the outside and the screen."""

    outside: Outside
    screen: Screen

    def run(self, address: str, work: Callable[[Api], Awaitable[Exit]]) -> None:
        """Do `work` with the API server at `address`, then end the program."""

        async def connected() -> Exit:
            async with self.outside.connect(address) as api:
                return await work(api)

        with self.telling_errors():
            raise typer.Exit(int(asyncio.run(connected())))

    @contextmanager
    def telling_errors(self) -> Iterator[None]:
        """End the program with a line for the user when something goes wrong inside."""
        try:
            yield
        except Error as error:
            self._tell(error)
            code = error.code if isinstance(error, CommandError) else Exit.FAILED
            raise typer.Exit(int(code)) from error
        except KeyboardInterrupt as error:
            raise typer.Exit(int(Exit.INTERRUPTED)) from error

    def _tell(self, error: Error) -> None:
        if not isinstance(error, CommandError):
            self.screen.error(explain(error))
            return
        for line in error.text.splitlines():
            self.screen.error(line)


def session_of(context: typer.Context) -> Session:
    """Return the session that `build_app` put there."""
    session = context.obj
    if not isinstance(session, Session):
        raise TypeError("the command line was not built by build_app")
    return session


def explain(error: Error) -> str:
    """Return an error as one line that ends with the next step where there is one."""
    text = " ".join(str(error).split())
    match error:
        case Unavailable() if not text.startswith("failed to "):
            return f"{text}; --api-address or MASERVE_API_ADDRESS names another API server"
        case NotFound():
            return f"{text}; `maserve get {error.kind} -A` lists those there are"
        case Conflict() | Exists() | Expired():
            return f"{text}; run the command again"
        case _:
            return text
