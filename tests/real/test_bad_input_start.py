"""Starts that cannot be: `maserve up` says why in one line, ends with 1 and has started nothing."""

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from maserve.backends.triton.local import Command, Engine, EngineLaunch
from maserve.base.errors import Unavailable, Unsupported
from maserve.base.keys import Key
from maserve.base.tasks import run_until
from maserve.client import Client
from maserve.cmd.controllermgr import options
from maserve.cmd.settings import Settings
from maserve.cmd.up import run_down, serve_until
from maserve.cmd.wiring import Module
from maserve.conditions import find_condition
from maserve.host import DataFolder
from maserve.testing.loopback import free_port
from maserve.testing.resources import an_inference_server
from maserve.wire import v2

# Each starts the whole program once, on a machine that does other things too.
pytestmark = [pytest.mark.real, pytest.mark.timeout(60)]

NO_DATABASE = b"a text that somebody has put at the place of the database, long enough for a header"


@dataclass(frozen=True, slots=True)
class Start:
    """One run of `maserve up` on a folder: what it said, and what is there afterwards."""

    code: int
    out: str
    err: str
    data: Path

    def expect_refused(self, text: str) -> None:
        """Fail unless it ended with 1 and this one line, and left nothing running."""
        assert (self.code, self.out, self.err) == (1, "", f"error: {text}\n")
        assert list(self.data.glob("processes/*")) == []
        assert list(self.data.glob("envoy/*")) == []


class Up:
    """Runs `maserve up` on `data` with free ports, unless a test names others."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.addresses = {
            name: f"127.0.0.1:{free_port()}" for name in ("api", "gateway", "metrics")
        }

    async def __call__(self, *more: str, data: Path | None = None) -> Start:
        data = data or self.data
        listening = [f"--{name}-address={at}" for name, at in self.addresses.items()]
        program = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "maserve.cmd.main",
            "up",
            f"--data-dir={data}",
            *listening,
            *more,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await program.communicate()
        return Start(program.returncode or 0, out.decode(), err.decode(), data)


@pytest.fixture
def up(tmp_path: Path) -> Up:
    return Up(tmp_path)


@pytest.fixture
def taken() -> Iterator[str]:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield f"127.0.0.1:{listening.getsockname()[1]}"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "api",
            "--api-address %s is in use by another program; end that one or choose another address",
        ),
        (
            "metrics",
            (
                "--metrics-address %s is in use by another program; end that one or choose another "
                "address"
            ),
        ),
        ("gateway", "--gateway-address %s is in use; choose another one"),
    ],
)
async def test_an_occupied_port_is_named_with_its_option(
    up: Up, taken: str, name: str, text: str
) -> None:
    up.addresses[name] = taken

    (await up()).expect_refused(text % taken)


async def test_an_address_that_is_not_this_machine_is_refused(up: Up) -> None:
    up.addresses["metrics"] = "0.0.0.0:8091"

    start = await up()

    start.expect_refused(
        "--metrics-address must be a loopback address until there is authentication: '0.0.0.0:8091'"
    )
    assert not up.data.exists()


async def test_a_damaged_database_is_named_and_left_as_it_is(up: Up) -> None:
    up.data.mkdir()
    file = up.data / "maserve.db"
    file.write_bytes(NO_DATABASE)

    (await up()).expect_refused(
        f"{file} is damaged or is no database (file is not a database); it was left as it is: "
        "restore a copy, or move it and its -wal and -shm files away to start empty"
    )
    assert file.read_bytes() == NO_DATABASE
    assert list(up.data.glob("maserve.db-*")) == []


def a_file(path: Path) -> Path:
    path.write_text("mine")
    return path


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda folder: a_file(folder / "file"), "File exists"),
        (lambda folder: a_file(folder / "file") / "below", "Not a directory"),
        (lambda _: Path("/proc/maserve"), "No such file or directory"),
    ],
    ids=["a file", "below a file", "where nothing can be made"],
)
async def test_a_data_folder_that_cannot_be_written_is_named(
    up: Up, make: Callable[[Path], Path], why: str
) -> None:
    data = make(up.folder)

    (await up(data=data)).expect_refused(
        f"--data-dir: cannot write {data}/maserve.log: {why}; name a folder of your own"
    )


async def test_a_data_folder_in_use_names_who_uses_it(up: Up) -> None:
    with DataFolder(up.data).lock() as lock:
        lock.publish("127.0.0.1:15566")
        start = await up()
        holder = DataFolder(up.data).find_holder()

    start.expect_refused(
        f"data folder {up.data} is in use by process {os.getpid()}, which answers on "
        "127.0.0.1:15566; `maserve down` ends that one; or name another --data-dir"
    )
    assert holder == os.getpid()


async def test_a_settings_file_that_is_not_there_is_named(up: Up, tmp_path: Path) -> None:
    path = tmp_path / "none.yaml"

    start = await up(f"--config={path}")

    start.expect_refused(
        f"--config cannot read {path}: [Errno 2] No such file or directory: '{path}'"
    )
    assert not up.data.exists()


async def test_everything_wrong_in_a_settings_file_is_named(up: Up, tmp_path: Path) -> None:
    path = tmp_path / "settings.yaml"
    path.write_text("deployment:\n  rollout:\n    skipCanry: true\nlogging: {level: loud}\n")

    start = await up(f"--config={path}")

    start.expect_refused(
        f"logging.level is 'loud', not one of debug, info, warning, error ({path}:4); "
        "deployment.rollout.skipCanry is not a setting; known here: modelLoadTimeout, skipCanary, "
        f"soakPeriod ({path}:3)"
    )
    assert not up.data.exists()


def settings_of(up: Up) -> Settings:
    return Settings(
        data_dir=up.data,
        api_address=up.addresses["api"],
        gateway_address=up.addresses["gateway"],
        metrics_address=up.addresses["metrics"],
    )


def taking(taken: socket.socket, address: str) -> Module:
    """Return a module whose invoke takes an address that was free when the start looked."""

    def take() -> None:
        host, port = address.rsplit(":", 1)
        taken.bind((host, int(port)))
        taken.listen()

    return Module(name="rival", invoke=(take,))


def no_ear(_text: str) -> None:
    """Listen to nothing that is told."""


class OwnFaultError(Exception):
    """What a module of somebody's own raises."""


def fail() -> None:
    raise OwnFaultError


FAILING = Module(name="failing", invoke=(fail,))


@pytest.mark.parametrize("name", ["api", "metrics"])
async def test_an_address_that_is_taken_during_the_start_leaves_nothing(up: Up, name: str) -> None:
    with socket.socket() as rival:
        modules = (*options(), taking(rival, up.addresses[name]))
        with pytest.raises(Unavailable, match=f"in use.*--{name}-address|--{name}-address.*in use"):
            await serve_until(asyncio.Event(), settings_of(up), no_ear, modules)

    assert list(up.data.glob("processes/*")) == []


async def test_an_invoke_that_fails_leaves_nothing(up: Up) -> None:
    with pytest.raises(OwnFaultError):
        await serve_until(asyncio.Event(), settings_of(up), no_ear, (*options(), FAILING))

    assert list(up.data.glob("processes/*")) == []


async def test_a_failed_start_leaves_an_adopted_envoy_as_it_runs(up: Up) -> None:
    settings = replace(settings_of(up), keep_running=True)
    async with serving(settings, options()):
        before = [path.read_bytes() for path in up.data.glob("processes/*")]

    with pytest.raises(OwnFaultError):
        await serve_until(asyncio.Event(), settings, no_ear, (*options(), FAILING))

    assert [path.read_bytes() for path in up.data.glob("processes/*")] == before
    assert len(before) == 1
    await run_down(settings, no_ear, options())
    assert list(up.data.glob("processes/*")) == []


class MissingEngine:
    """What the wheel's engine says where the wheel is not installed."""

    async def prepare(self) -> str:
        raise Unsupported("Triton is not installed; install nvidia-pytriton")

    def command(self, launch: EngineLaunch) -> Command:
        raise AssertionError(launch)


def without_wheel(_engine: Engine) -> Engine:
    return MissingEngine()


@asynccontextmanager
async def serving(settings: Settings, modules: Sequence[Module]) -> AsyncIterator[list[str]]:
    """Serve in this process around the block, and drain at its end; yields what is told."""
    told: list[str] = []
    stop, ready, left = asyncio.Event(), asyncio.Event(), asyncio.Event()

    def tell(text: str) -> None:
        told.append(text)
        ready.set() if text.startswith("ready") else None

    async def serve() -> None:
        await serve_until(stop, settings, tell, modules)
        left.set()

    async with asyncio.TaskGroup() as group:
        group.create_task(run_until(left, serve()))
        await ready.wait()
        try:
            yield told
        finally:
            stop.set()


async def test_a_missing_triton_is_said_of_the_server_and_may_be_installed_later(
    up: Up,
) -> None:
    up.data.mkdir()
    settings = settings_of(up)
    no_wheel = (*options(), Module(name="no wheel", decorate=(without_wheel,)))
    async with serving(settings, no_wheel) as told, Client(settings.api_address) as client:
        await client.create(an_inference_server("is1", namespace="demo"))
        async with asyncio.timeout(20):
            server = await client.wait_until(
                v2.InferenceServer,
                Key("demo", "is1"),
                lambda now: (
                    now is not None and now.status.state == v2.INFERENCE_SERVER_STATE_FAILED
                ),
            )
        assert server is not None
        found = find_condition(server.status.conditions, "BackendProvision")
        assert found is not None
        assert found.message == ("cluster c1: Triton is not installed; install nvidia-pytriton")
        assert any("Triton is not installed" in line for line in told)
        await client.delete(v2.InferenceServer, Key("demo", "is1"))
        async with asyncio.timeout(20):
            await client.wait_until(v2.InferenceServer, Key("demo", "is1"), lambda now: now is None)
    assert list(up.data.glob("processes/*")) == []
