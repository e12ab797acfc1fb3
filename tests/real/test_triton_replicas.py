"""Replicas of the embedded mode with real Triton: life, roll, crash, adoption, removal."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from maserve.backends import ServerState, find_failed
from maserve.backends.triton.local import TritonWheel, this_interpreter
from maserve.backends.triton.local.state import ReplicaRecord, build_wish
from maserve.backends.triton.settings import STARTUP
from maserve.base.keys import ModelName
from maserve.host import DataFolder, write_json
from maserve.testing.leftovers import list_shared_memory
from maserve.testing.loopback import free_port
from maserve.testing.triton_stage import (
    CLUSTER,
    KEY,
    TARGET,
    Stage,
    a_server,
    a_stage,
    fast_settings,
    kill_leftovers,
    until,
)

# Real processes on two busy cores; the slowest test takes about five seconds alone.
pytestmark = [pytest.mark.real, pytest.mark.timeout(60)]


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> TritonWheel:
    folder = tmp_path_factory.mktemp("engines")
    return TritonWheel(folder, fast_settings(), interpreter=this_interpreter())


@pytest.fixture(autouse=True)
def _no_leftovers(tmp_path: Path) -> Iterator[None]:
    yield
    kill_leftovers(tmp_path)


@pytest.fixture
async def stage(tmp_path: Path, engine: TritonWheel) -> AsyncIterator[Stage]:
    async with a_stage(tmp_path, fast_settings(), engine) as running:
        yield running
        await running.backend.stop_all()


def engines(stage: Stage) -> dict[str, int]:
    """Return the pids of the engines by replica."""
    return {
        name.split("/")[-2]: pid for name, pid in stage.pids().items() if name.endswith("/engine")
    }


def of_replicas(pid_of: dict[str, int]) -> list[str]:
    return [name.rpartition("-")[2] for name in sorted(pid_of)]


async def test_replicas_serve_are_scaled_and_answer(stage: Stage) -> None:
    stage.want_models("m1")
    await stage.backend.create_server(a_server(2), TARGET)
    await stage.until_serving(a_server(2))
    await stage.until_loaded("m1")
    first = engines(stage)
    assert [await stage.predict(port, "m1") for port in stage.endpoints.ports()] == [[2, 4]] * 2

    await stage.backend.create_server(a_server(3), TARGET)
    await stage.until_serving(a_server(3))
    await stage.until_loaded("m1")
    assert of_replicas(engines(stage)) == ["0", "1", "2"]

    await stage.backend.create_server(a_server(1), TARGET)
    await stage.until_serving(a_server(1))
    await until(lambda: _gone(stage, 2))
    assert engines(stage) == {"triton-is1-c1-0": first["triton-is1-c1-0"]}
    assert [len(told) for told in stage.endpoints.told][-1] == 1


async def _gone(stage: Stage, programs: int) -> bool:
    return len(stage.pids()) == programs


async def test_changed_setting_starts_one_more_and_only_then_drains(
    tmp_path: Path, engine: TritonWheel
) -> None:
    """The next control plane adopts the replicas as they are, then replaces one at a time."""
    async with a_stage(tmp_path, fast_settings(), engine) as stage:
        stage.want_models("m1")
        await stage.backend.create_server(a_server(2), TARGET)
        await stage.until_serving(a_server(2))
        before = engines(stage)
    other = replace(fast_settings(), startup=replace(STARTUP, failure_threshold=61))
    async with a_stage(tmp_path, other, engine) as stage:
        status = await stage.backend.get_server_status(a_server(2), TARGET)
        assert (status.state, status.up_to_date) == (ServerState.CREATING, False)
        assert engines(stage) == before
        await until(lambda: _admitted(stage, 2))
        begun = len(stage.endpoints.told)
        await stage.backend.create_server(a_server(2), TARGET)
        await stage.until_serving(a_server(2))

        await until(lambda: _gone(stage, 4))
        counts = [len(told) for told in stage.endpoints.told[begun:]]
        assert counts == [3, 2, 3, 2]
        assert set(before.values()).isdisjoint(engines(stage).values())
        ports = stage.endpoints.ports()
        assert [await stage.predict(port, "m1") for port in ports] == [[2, 4]] * 2
        await stage.backend.stop_all()


async def test_killed_engine_leaves_the_endpoints_at_once_and_comes_back(stage: Stage) -> None:
    stage.want_models("m1")
    await stage.backend.create_server(a_server(2), TARGET)
    await stage.until_serving(a_server(2))
    await stage.until_loaded("m1")
    before = engines(stage)
    syncs = {name for name in stage.pids() if name.endswith("/model-sync")}
    victim = before["triton-is1-c1-0"]
    os.kill(victim, signal.SIGKILL)

    await until(lambda: _admitted(stage, 1))
    assert not await stage.backend.is_healthy(KEY, TARGET)
    await stage.until_serving(a_server(2))
    await stage.until_loaded("m1")
    row = stage.backend.views(KEY, CLUSTER)[0]
    assert row.restarts == 1
    assert row.pid != victim
    assert engines(stage)["triton-is1-c1-1"] == before["triton-is1-c1-1"]
    assert syncs <= set(stage.pids())


async def _admitted(stage: Stage, replicas: int) -> bool:
    return len(stage.endpoints.ports()) == replicas


async def test_killed_model_sync_comes_back_and_the_engine_is_untouched(stage: Stage) -> None:
    stage.want_models("m1")
    await stage.backend.create_server(a_server(1), TARGET)
    await stage.until_serving(a_server(1))
    before = stage.pids()
    (sync,) = (name for name in before if name.endswith("/model-sync"))
    os.kill(before[sync], signal.SIGKILL)

    async def back() -> bool:
        return stage.pids().get(sync, before[sync]) != before[sync]

    await until(back)
    assert engines(stage) == {"triton-is1-c1-0": before[sync.replace("model-sync", "engine")]}
    assert len(stage.endpoints.ports()) == 1


async def test_model_that_fails_is_reported_and_does_not_block_another(stage: Stage) -> None:
    stage.want_models("m1", "m2", broken="m1")
    await stage.backend.create_server(a_server(1), TARGET)
    await stage.until_serving(a_server(1))
    await stage.until_loaded("m2")
    report = await stage.backend.get_model_status(KEY, TARGET, ModelName("m1"))
    failed = find_failed(report)

    assert failed is not None
    assert "weights are missing" in failed.reason


async def test_drain_is_out_of_the_endpoints_before_the_engine_is_asked_to_end(
    tmp_path: Path, engine: TritonWheel
) -> None:
    async with a_stage(tmp_path, fast_settings(pre_stop_s=1.0), engine) as stage:
        await stage.backend.create_server(a_server(1), TARGET)
        await stage.until_serving(a_server(1))
        (port,) = stage.endpoints.ports()
        stage.want_models("m1")
        await stage.until_loaded("m1")
        await stage.backend.delete_server(KEY, TARGET)
        await until(lambda: _admitted(stage, 0))
        answer = await stage.predict(port, "m1")
        await stage.until_deleted()

    assert answer == [2, 4]


async def test_deleted_server_leaves_no_process_no_file_and_no_shared_memory(
    stage: Stage,
) -> None:
    await stage.backend.create_server(a_server(2), TARGET)
    stage.want_models("m1")
    await stage.until_serving(a_server(2))
    await stage.until_loaded("m1")
    children, regions = _children(engines(stage)), list_shared_memory(stage.folder)
    assert len(regions) == 2
    await stage.until_deleted()

    assert stage.pids() == {}
    assert stage.endpoints.now == {}
    assert stage.files() == ["c1", "c1/default", "c1/default/is1", "c1/default/is1/model-list.json"]
    assert children
    assert [pid for pid in children if Path(f"/proc/{pid}").exists()] == []
    assert list(stage.folder.processes.iterdir()) == []
    assert [region for region in regions if region.exists()] == []


def _children(pids: dict[str, int]) -> list[int]:
    """Return the stub processes of the engines."""
    texts = (Path(f"/proc/{pid}/task/{pid}/children").read_text() for pid in pids.values())
    return [int(child) for text in texts for child in text.split()]


@pytest.mark.parametrize("kind", [0, 1, 2], ids=["http", "grpc", "metrics"])
async def test_engine_whose_port_is_taken_moves_to_others(
    tmp_path: Path, engine: TritonWheel, kind: int
) -> None:
    home = DataFolder(tmp_path).inference_server(CLUSTER, KEY)
    wish = build_wish(a_server(1), fast_settings(), await engine.prepare())
    with socket.create_server(("127.0.0.1", 0)) as taken:
        before = [free_port() for _ in range(3)]
        before[kind] = taken.getsockname()[1]
        known = ReplicaRecord(
            cluster=CLUSTER, key=KEY, ordinal=0, template=wish.template, ports=tuple(before)
        )
        write_json(home / "desired.json", wish.row())
        write_json(home / "replicas" / known.name / "replica.json", known.row())
        async with a_stage(tmp_path, fast_settings(), engine) as stage:
            await stage.until_serving(a_server(1))
            (after,) = stage.endpoints.ports()
            restarts = stage.backend.views(KEY, CLUSTER)[0].restarts
            await stage.until_deleted()

    assert after not in before
    assert restarts == 0


async def test_clean_stop_ends_everything_and_the_next_start_brings_it_back(
    tmp_path: Path, engine: TritonWheel
) -> None:
    async with a_stage(tmp_path, fast_settings(), engine) as stage:
        stage.want_models("m1")
        await stage.backend.create_server(a_server(2), TARGET)
        await stage.until_serving(a_server(2))
        await stage.backend.stop_all()
        assert stage.pids() == {}
    async with a_stage(tmp_path, fast_settings(), engine) as stage:
        await stage.until_serving(a_server(2))
        await stage.until_loaded("m1")
        await stage.until_deleted()


async def test_drain_under_way_goes_on_after_a_restart(tmp_path: Path, engine: TritonWheel) -> None:
    settings = fast_settings(pre_stop_s=1.0)
    async with a_stage(tmp_path, settings, engine) as stage:
        await stage.backend.create_server(a_server(2), TARGET)
        await stage.until_serving(a_server(2))
        kept = engines(stage)["triton-is1-c1-0"]
        await stage.backend.create_server(a_server(1), TARGET)
        await until(lambda: _admitted(stage, 1))
        await until(lambda: _saved_draining(tmp_path))
    async with a_stage(tmp_path, settings, engine) as stage:
        await until(lambda: _gone(stage, 2))
        assert engines(stage) == {"triton-is1-c1-0": kept}
        assert max(len(told) for told in stage.endpoints.told) == 1
        await stage.until_deleted()


async def _saved_draining(folder: Path) -> bool:
    state = folder / "clusters/c1/default/is1/replicas/triton-is1-c1-1/replica.json"
    return '"draining": true' in state.read_text()


CONTROL_PLANE = """
import asyncio, pathlib, sys
from maserve.backends.triton.local import TritonWheel, this_interpreter
from maserve.testing.triton_stage import TARGET, a_server, a_stage, fast_settings

async def main():
    path, engines = map(pathlib.Path, sys.argv[1:])
    engine = TritonWheel(engines, fast_settings(), interpreter=this_interpreter())
    async with a_stage(path, fast_settings(), engine) as stage:
        stage.want_models("m1")
        await stage.backend.create_server(a_server(2), TARGET)
        await stage.until_serving(a_server(2))
        await stage.until_loaded("m1")
        print("serving", flush=True)
        await asyncio.sleep(60)

asyncio.run(main())
"""


async def test_killed_control_plane_loses_nothing_and_the_next_adopts(
    tmp_path: Path, engine: TritonWheel, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("engines-of-first")
    first = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", CONTROL_PLANE, str(tmp_path), str(folder)),
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert first.stdout is not None
    said = b"".join([line async for line in _lines_until(first.stdout, b"serving")])
    first.kill()
    await first.communicate()
    pids = sorted(int(word[4:]) for word in said.decode().split() if word.startswith("pid="))
    alive = [pid for pid in pids if Path(f"/proc/{pid}").exists()]

    async with a_stage(tmp_path, fast_settings(), engine) as stage:
        await stage.until_serving(a_server(2))
        adopted = sorted(stage.pids().values())
        told = stage.endpoints.told
        rows = stage.backend.views(KEY, CLUSTER)
        await stage.until_loaded("m1")
        await stage.until_deleted()

    assert alive == pids
    assert len(adopted) == 4
    assert adopted == pids
    assert [row.restarts for row in rows] == [0, 0]
    assert len(told[0]) == 2


async def _lines_until(stream: asyncio.StreamReader, last: bytes) -> AsyncIterator[bytes]:
    while line := await stream.readline():
        yield line
        if line.strip() == last:
            return
