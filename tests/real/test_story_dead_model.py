"""A model that is dead, a load that never ends, a replica that is replaced (ADR 0019, 0020)."""

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from maserve.base.clock import SystemClock
from maserve.host.endings import find_processes
from maserve.testing.live_story import (
    SERVER,
    Story,
    a_story,
    is_rolled_back,
)
from maserve.wire import v2

# Engines start, drain and are replaced.
pytestmark = [pytest.mark.real, pytest.mark.timeout(150)]


async def test_a_model_whose_process_was_killed_is_noticed_and_loaded_anew(tmp_path: Path) -> None:
    async with a_story(tmp_path) as story:
        await story.model("blue")
        await story.server(clusters=("c1",), replicas=2)
        await story.roll("blue")
        async with story.load() as load:
            (victim, _) = model_processes(tmp_path, "blue")
            os.kill(victim, signal.SIGKILL)
            await until(story, lambda said: "model blue is dead" in said)
            await until(story, lambda said: "model blue is dead" not in said)
            await SystemClock().sleep(1.0)
            summary = await load.finish()
        print(f"a model's process killed: {summary.to_json()}")
        now = model_processes(tmp_path, "blue")
        assert (len(now), victim in now) == (2, False)
        assert summary.failed <= summary.sent * 0.1
        events = await story.client.describe(v2.InferenceServer, SERVER)
        assert any("model blue is dead" in event.message for event in events.events)


async def test_a_model_that_dies_again_and_again_has_its_replica_replaced(tmp_path: Path) -> None:
    async with a_story(tmp_path) as story:
        await story.model("blue")
        await story.server(clusters=("c1",), replicas=2)
        await story.roll("blue")
        engines = engine_pids(story)
        victim = next(name for name in engines if "-c1-0/" in name)
        async with asyncio.timeout(25), asyncio.TaskGroup() as group:
            killer = group.create_task(keep_killing(tmp_path, "c1-0/"))
            while engine_pids(story).get(victim) == engines[victim]:
                await SystemClock().sleep(0.2)
            killer.cancel()
        print("the replica was replaced")
        others = {name: pid for name, pid in engine_pids(story).items() if "-c1-1/" in name}
        assert others == {name: pid for name, pid in engines.items() if "-c1-1/" in name}


async def test_a_load_that_never_ends_is_named_and_its_replica_replaced(tmp_path: Path) -> None:
    settings = {
        "inferenceServer": {
            "triton": {"autoCompleteConfig": False, "drain": {"preStopSeconds": 1}},
        },
        "deployment": {"rollout": {"modelLoadTimeout": "3s"}},
        "modelSync": {"unloadGrace": "1s"},
    }
    async with a_story(tmp_path, settings=settings) as story:
        await story.model("blue")
        await story.model("endless", load_s=100_000)
        await story.server(clusters=("c1",), replicas=1)
        await story.roll("blue")
        engines = engine_pids(story)
        await story.ask("endless")
        await story.until(lambda now: is_rolled_back(now, "blue"))
        async with story.load(rate_per_s=40) as load:
            await until(story, lambda said: "endless has not ended" in said)
            async with asyncio.timeout(60):
                while set(engine_pids(story).values()) & set(engines.values()):
                    await SystemClock().sleep(0.2)
            summary = await load.finish()
        print(f"a hung load, its replica replaced: {summary.to_json()}")
        assert summary.failed == 0


async def test_a_replica_is_replaced_by_hand_under_load_without_a_loss(tmp_path: Path) -> None:
    async with a_story(tmp_path) as story:
        await story.model("blue")
        await story.server(clusters=("c1",), replicas=1)
        await story.roll("blue")
        ((name, pid),) = engine_pids(story).items()
        replica = name.split("/")[-2]
        async with story.load() as load:
            said = await story.plane.command("restart-replica", replica, "-n", "story")
            summary = await load.finish()
        print(f"restart-replica: {said.splitlines()[-1]}; {summary.to_json()}")
        assert summary.failed == 0
        assert pid not in engine_pids(story).values()
        wrong = await story.plane.command("restart-replica", "nope", "-n", "story", code=1)
        assert "no replica nope" in wrong


def model_processes(folder: Path, model: str) -> tuple[int, ...]:
    return tuple(
        pid
        for pid in find_processes(str(folder))
        if f"/{model}/" in Path(f"/proc/{pid}/cmdline").read_text() and is_stub(pid)
    )


def is_stub(pid: int) -> bool:
    return "triton_python_backend_stub" in Path(f"/proc/{pid}/cmdline").read_text().split("\0")[0]


async def keep_killing(folder: Path, replica: str) -> None:
    while True:
        for pid in model_processes(folder, "blue"):
            if replica in Path(f"/proc/{pid}/cmdline").read_text():
                os.kill(pid, signal.SIGKILL)
        await SystemClock().sleep(0.5)


def engine_pids(story: Story) -> dict[str, int]:
    pids = story.plane.program_pids()
    return {name: pid for name, pid in pids.items() if name.endswith("/engine")}


async def until(story: Story, is_so: Callable[[str], bool]) -> None:
    said = ""
    async with asyncio.timeout(60):
        while True:
            view = await story.server_view()
            rows = [replica for cluster in view.clusters for replica in cluster.replicas]
            said = "; ".join(row.reason for row in rows)
            if is_so(said):
                return
            await SystemClock().sleep(0.1)
