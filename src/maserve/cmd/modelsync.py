"""model-sync, the process beside each replica: `maserve-modelsync` on the command line.

One runs per replica, so this module imports little: no store, no container.
"""

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import structlog

from maserve.artifacts import Artifacts, CancelableWorker, StorageSettings, parse_storage_settings
from maserve.base.backoff import Backoff
from maserve.base.clock import SystemClock
from maserve.base.durations import parse_duration
from maserve.base.errors import Error, Invalid, Problem
from maserve.base.keys import ReplicaName
from maserve.base.tasks import run_until
from maserve.cmd.engineload import GrpcLoad
from maserve.host.http import HttpClient
from maserve.host.logs import lossy
from maserve.modelsync import ModelSync, SyncSettings, TritonEngine
from maserve.modelsync.settings import STATUS_FILE

_DURATIONS = {
    "unload-grace": ("2s", "between a model leaving the readiness list and its unload"),
    "load-timeout": ("15m", "how long one load call may take"),
    "retry-initial": ("5s", "before a failed load is tried again; doubles"),
    "retry-limit": ("5m", "the longest such pause"),
    "download-retry-initial": ("2s", "before a failed download is tried again; doubles"),
    "download-retry-limit": ("5m", "the longest such pause"),
    "poll": ("50ms", "how often to look whether the model config was replaced"),
    "fallback": ("2s", "how often to look at everything"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Everything the process was told."""

    sync: SyncSettings
    storage: StorageSettings
    engine_url: str
    engine_grpc: str
    load_timeout_s: float
    once: bool


def main() -> None:
    """Run until SIGTERM or SIGINT; exit status 2 for wrong options, 1 for an unusable place."""
    _configure_logs()
    try:
        options = parse_options(sys.argv[1:], os.environ)
    except Invalid as error:
        sys.stderr.write(f"maserve-modelsync: {error}\n")
        raise SystemExit(2) from error
    try:
        asyncio.run(_serve(options))
    except Error as error:
        structlog.get_logger().error("model-sync cannot run", error=str(error))
        raise SystemExit(1) from error


def parse_options(arguments: Sequence[str], variables: Mapping[str, str]) -> Options:
    """Read the command line and the storage variables. Raises `Invalid` with every problem."""
    given = _parser().parse_args(arguments)
    problems: list[Problem] = []
    seconds = {name: _seconds(name, given, problems) for name in _DURATIONS}
    if not given.engine_url.startswith(("http://", "https://")):
        problems.append(Problem("--engine-url", f"is no http:// address: {given.engine_url!r}"))
    if not given.engine_grpc.rpartition(":")[2].isdecimal():
        problems.append(Problem("--engine-grpc", f"is no host:port: {given.engine_grpc!r}"))
    if given.parallel_downloads < 1:
        problems.append(Problem("--parallel-downloads", "must be at least 1"))
    try:
        storage = parse_storage_settings(variables)
    except Invalid as error:
        problems.extend(error.problems)
        storage = StorageSettings()
    if problems:
        raise Invalid(*problems)
    return Options(
        sync=_sync_settings(given, seconds),
        storage=storage,
        engine_url=given.engine_url,
        engine_grpc=given.engine_grpc,
        load_timeout_s=seconds["load-timeout"],
        once=given.once,
    )


async def _serve(options: Options) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    load = GrpcLoad(options.engine_grpc, timeout_s=options.load_timeout_s)
    async with (
        HttpClient() as http,
        Artifacts(options.storage) as source,
        CancelableWorker("model-sync-cache", threads=2) as worker,
    ):
        sync = ModelSync(
            options.sync,
            clock=SystemClock(),
            engine=TritonEngine(http, options.engine_url, load=load),
            source=source,
            worker=worker,
        )
        structlog.get_logger().info("model-sync started", replica=options.sync.replica)
        if options.once:
            await sync.run_once()
        else:
            await run_until(stop, sync.run())
        structlog.get_logger().info("model-sync stopped", replica=options.sync.replica)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="maserve-modelsync", description="Model-sync sidecar.")
    parser.add_argument("--replica", required=True, help="this replica's name (pod name)")
    parser.add_argument(
        "--config", type=Path, required=True, help="model-list.json, or its mounted folder"
    )
    parser.add_argument(
        "--list-lock",
        type=Path,
        help="lock shared with the list's writer [beside a list that is a file]",
    )
    parser.add_argument(
        "--repository", type=Path, required=True, help="the folder the engine loads from"
    )
    parser.add_argument(
        "--cache", type=Path, required=True, help="downloads; same volume as the repository"
    )
    parser.add_argument("--private", type=Path, help="own folder [beside the repository]")
    parser.add_argument("--engine-url", required=True, help="such as http://127.0.0.1:8000")
    parser.add_argument("--engine-grpc", required=True, help="such as 127.0.0.1:8001")
    parser.add_argument(
        "--readiness", type=Path, required=True, help="file for the readiness probe"
    )
    parser.add_argument(
        "--status-file", type=Path, help=f"[{STATUS_FILE} beside the readiness file]"
    )
    parser.add_argument("--parallel-downloads", type=int, default=2)
    parser.add_argument("--once", action="store_true", help="bring up what can be now, and end")
    for name, (default, text) in _DURATIONS.items():
        parser.add_argument(f"--{name}", default=default, help=f"{text} [{default}]")
    return parser


def _seconds(name: str, given: argparse.Namespace, problems: list[Problem]) -> float:
    """Read a duration; a bare number is seconds."""
    text: str = getattr(given, name.replace("-", "_"))
    try:
        plain = text if text[-1:].isalpha() else f"{text}s"
        seconds = parse_duration(plain, f"--{name}")
    except Invalid as error:
        problems.extend(error.problems)
        return 0.0
    if seconds < 0 or (seconds == 0 and name != "unload-grace"):
        problems.append(Problem(f"--{name}", "must be more than 0"))
    return seconds


def _sync_settings(given: argparse.Namespace, seconds: Mapping[str, float]) -> SyncSettings:
    repository: Path = given.repository.resolve()
    private: Path = given.private or repository.with_name(f".{repository.name}.model-sync")
    return SyncSettings(
        replica=ReplicaName(given.replica),
        model_config=given.config,
        list_lock=given.list_lock or _default_lock(given.config),
        repository=repository,
        cache=given.cache.resolve(),
        private=private.resolve(),
        readiness_file=given.readiness,
        status_file=given.status_file or given.readiness.with_name(STATUS_FILE),
        unload_grace_s=seconds["unload-grace"],
        poll_s=seconds["poll"],
        fallback_s=seconds["fallback"],
        load_timeout_s=seconds["load-timeout"],
        parallel_downloads=given.parallel_downloads,
        load_backoff=Backoff(initial_s=seconds["retry-initial"], limit_s=seconds["retry-limit"]),
        download_backoff=Backoff(
            initial_s=seconds["download-retry-initial"], limit_s=seconds["download-retry-limit"]
        ),
    )


def _default_lock(config: Path) -> Path | None:
    """Return the lock beside a list; a mounted ConfigMap cannot have one."""
    return None if config.is_dir() else config.with_name(f"{config.name}.lock")


def _configure_logs() -> None:
    structlog.configure(
        processors=[
            structlog.stdlib.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(20),
        logger_factory=structlog.WriteLoggerFactory(file=lossy(sys.stderr.fileno())),
    )


if __name__ == "__main__":
    main()
