"""The `maserve` program: the client commands, `up` and `down`.

`up` and `down` import what they need when they are called: a client command starts without it. A
control plane of one's own is this program over another list of modules: `main(options)`.
"""

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, NoReturn, TypeVar

import typer

from maserve.base.clock import SystemClock
from maserve.base.errors import Error, Invalid, Problem
from maserve.cli.app import build_app
from maserve.cmd.modules import Module

T = TypeVar("T")

DEFAULT_DATA_DIR = Path("~/.local/share/maserve")

_STORAGE_PREFIXES = ("AWS_", "GOOGLE_", "AZURE_")

DataDir = Annotated[
    Path, typer.Option("--data-dir", help="Where objects, models and logs are kept.")
]


def stock_options() -> Sequence[Module]:
    """Return the stock list of modules."""
    from maserve.cmd.controllermgr import options

    return options()


def main(options: Callable[[], Sequence[Module]] = stock_options) -> None:
    """Run the program; `up` and `down` wire the modules that `options` returns."""
    build_program(options)()


def build_program(options: Callable[[], Sequence[Module]] = stock_options) -> typer.Typer:
    """Return all commands."""
    app = build_app()
    serving = _Serving(options)
    app.command(name="up", help="Serve on this machine, in the foreground.")(serving.up)
    app.command(name="down", help="End what a data folder still runs.")(serving.down)
    return app


class _Serving:
    """The two commands that need the modules."""

    def __init__(self, options: Callable[[], Sequence[Module]]) -> None:
        self._options = options

    def up(
        self,
        data_dir: DataDir = DEFAULT_DATA_DIR,
        api_address: Annotated[str, typer.Option(help="Where the gRPC API listens.")] = (
            "127.0.0.1:15566"
        ),
        gateway_address: Annotated[str, typer.Option(help="Where predictions are asked for.")] = (
            "127.0.0.1:8880"
        ),
        metrics_address: Annotated[str, typer.Option(help="Where Prometheus metrics are.")] = (
            "127.0.0.1:8091"
        ),
        config: Annotated[Path | None, typer.Option(help="A YAML file with settings.")] = None,
        keep_running: Annotated[
            bool, typer.Option("--keep-running", help="Leave the data plane up at the end.")
        ] = False,
    ) -> None:
        """Serve until SIGINT or SIGTERM; prints `ready` with the addresses once it serves."""
        from maserve.cmd.addresses import settle_address
        from maserve.cmd.logs import open_log
        from maserve.cmd.settings import parse_settings
        from maserve.cmd.up import run_up

        gateway = _or_exit(lambda: settle_address(gateway_address, "--gateway-address"))
        metrics = _or_exit(lambda: settle_address(metrics_address, "--metrics-address"))
        settings = _or_exit(
            lambda: parse_settings(
                _read_config(config),
                source=str(config or "settings"),
                data_dir=data_dir.expanduser().absolute(),
                api_address=api_address,
                gateway_address=gateway,
                metrics_address=metrics,
                storage_variables=_storage_variables(),
                keep_running=keep_running,
            )
        )
        with _or_exit(lambda: open_log(settings.data_dir, settings.logs)):
            _run(run_up(settings, _say, self._options()))

    def down(self, data_dir: DataDir = DEFAULT_DATA_DIR) -> None:
        """Stop a running control plane, or the data plane that one has left running."""
        from maserve.cmd.logs import open_log
        from maserve.cmd.settings import Settings
        from maserve.cmd.up import run_down

        settings = Settings(data_dir=data_dir.expanduser().absolute())
        if not settings.data_dir.is_dir():
            _fail(f"--data-dir: there is no folder {settings.data_dir}")
        with _or_exit(lambda: open_log(settings.data_dir, settings.logs)):
            _run(run_down(settings, _say, self._options()))


def _run(work: Coroutine[Any, Any, None]) -> None:
    """Run to the end; an error of ours is one line and exit status 1."""
    try:
        asyncio.run(work)
    except Error as error:
        _fail(str(error))
    except BaseExceptionGroup as group:
        ours = group.subgroup(lambda each: isinstance(each, Error))
        if ours is None:
            raise
        _fail(str(_first(ours)))


def _or_exit(work: Callable[[], T]) -> T:
    """Return what `work` makes; an error of ours is one line and exit status 1."""
    try:
        return work()
    except Error as error:
        _fail(str(error))


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    first = group.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first


def _fail(text: str) -> NoReturn:
    print(f"error: {text}", file=sys.stderr)
    raise SystemExit(1)


def _say(text: str) -> None:
    now = SystemClock().now().astimezone()
    with suppress(OSError):  # a full disk or a closed terminal behind stdout ends nothing
        print(f"{now:%H:%M:%S} {text}", flush=True)


def _read_config(path: Path | None) -> str:
    """Return the settings file's text; no file is an empty one. Raises `Invalid`."""
    if path is None:
        return ""
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise Invalid(Problem("--config", f"cannot read {path}: {error}")) from error


def _storage_variables() -> dict[str, str]:
    """Return the storage vendors' variables of this process's environment."""
    return {name: value for name, value in os.environ.items() if name.startswith(_STORAGE_PREFIXES)}


if __name__ == "__main__":
    main()
