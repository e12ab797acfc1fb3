"""A loaded model may be dead, and a load may never end: noticed, said, loaded anew (ADR 0019)."""

import asyncio
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from maserve.base.keys import ModelName, ReplicaName
from maserve.modelsync.decide import decide
from maserve.modelsync.engine import count_instances
from maserve.modelsync.memory import Memory
from maserve.modelsync.modelprocesses import TritonModelProcesses
from maserve.modelsync.settings import SyncSettings
from maserve.modelsync.status import build_status
from maserve.modelsync.types import (
    Action,
    EngineModel,
    EngineState,
    ModelState,
    Step,
    Wanted,
    World,
)
from maserve.testing.clock import FakeClock

M = ModelName("m")
WANT = Wanted(storage_path="s3://b/m", content="c1", serving=True)
LOADED = World(
    list_readable=True,
    wanted={M: WANT},
    engine={M: EngineModel(state=EngineState.READY)},
    linked={M: "c1"},
    applied={M: "c1"},
    staged=frozenset({(M, "c1")}),
)
HERE = Path("/nowhere")
SETTINGS = SyncSettings(
    replica=ReplicaName("r"),
    model_config=HERE,
    list_lock=None,
    repository=HERE,
    cache=HERE,
    private=HERE,
    readiness_file=HERE,
    status_file=HERE,
)


def died(times: int, *, apart_s: float = 1.0) -> Memory:
    memory = Memory(wanted={M: WANT})
    for number in range(times):
        memory.note_death(M, WANT, settings=SETTINGS, now=number * apart_s)
    return memory


def world_of(memory: Memory) -> World:
    return replace(LOADED, dead=memory.dead, failures=memory.failures)


def test_a_dead_model_is_loaded_anew_at_once_and_then_after_pauses() -> None:
    load = Action(step=Step.LOAD, model=M, storage_path="s3://b/m", content="c1")
    assert decide(world_of(died(1)), now=0.0, grace_s=2.0).actions == (load,)
    assert decide(world_of(died(2)), now=1.0, grace_s=2.0).actions == ()
    assert decide(world_of(died(2)), now=6.0, grace_s=2.0).actions == (load,)


@pytest.mark.parametrize(("times", "permanent"), [(1, False), (2, False), (3, True)])
def test_a_dead_model_is_said_to_be_dead(times: int, permanent: bool) -> None:
    world = world_of(died(times))
    plan = decide(world, now=10.0, grace_s=2.0)
    row = build_status(world, plan, {}, FakeClock().now())[M]
    assert (row.state, row.permanent) == (ModelState.DEAD, permanent)
    assert ("does not help" in row.reason) is permanent


def test_deaths_that_are_far_apart_do_not_add_up() -> None:
    assert died(3, apart_s=61.0).failures[M].count == 1


def test_a_load_that_worked_ends_it() -> None:
    memory = died(3)
    memory.note_success(Action(step=Step.LOAD, model=M, content="c1"))
    assert (memory.dead, memory.failures) == ({}, {})


def test_what_the_engine_moves_by_itself_is_timed() -> None:
    memory = Memory()
    memory.note_moving(frozenset({M}), 1.0)
    memory.note_moving(frozenset({M}), 5.0)
    assert memory.moving_since == {M: 1.0}
    memory.busy[M] = Action(step=Step.LOAD, model=M)
    memory.note_moving(frozenset({M}), 6.0)
    assert memory.moving_since == {}


@pytest.mark.parametrize(
    ("config", "count"),
    [
        pytest.param({"backend": "onnxruntime", "instance_group": [{"count": 2}]}, 0, id="inside"),
        pytest.param({"backend": "python", "instance_group": [{"count": 2}]}, 2, id="two"),
        pytest.param(
            {"backend": "python", "instance_group": [{"count": 2, "gpus": [0, 1]}, {"count": 1}]},
            5,
            id="on-each-gpu",
        ),
        pytest.param({"platform": "ensemble"}, 0, id="ensemble"),
        pytest.param([], 0, id="no-config"),
    ],
)
def test_only_python_models_have_processes(config: object, count: int) -> None:
    assert count_instances(config) == count


async def a_process(folder: Path) -> asyncio.subprocess.Process:
    """Start a program with an argument in the model's folder, and wait until it is to be seen."""
    argument = str(folder / "m" / "1" / "model.py")
    code = "import sys, time; print(flush=True); time.sleep(60)"
    program = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, argument, stdout=asyncio.subprocess.PIPE
    )
    assert program.stdout is not None
    await program.stdout.readline()
    return program


async def test_the_end_of_a_model_s_process_is_noticed(tmp_path: Path) -> None:
    ended = asyncio.Event()
    processes = TritonModelProcesses(tmp_path, on_end=ended.set)
    program = await a_process(tmp_path)
    processes.watch(M, 1)
    assert processes.ended() == frozenset()
    os.kill(program.pid, 9)
    async with asyncio.timeout(10):
        await ended.wait()
    assert processes.ended() == {M}
    processes.forget(M)
    assert processes.ended() == frozenset()
    await program.wait()


async def test_fewer_processes_than_there_should_be_is_a_death(tmp_path: Path) -> None:
    processes = TritonModelProcesses(tmp_path, on_end=lambda: None)
    program = await a_process(tmp_path)
    processes.watch(M, 2)
    assert processes.ended() == {M}
    processes.forget(M)
    program.kill()
    await program.wait()


async def test_processes_that_cannot_be_seen_are_no_death(tmp_path: Path) -> None:
    processes = TritonModelProcesses(tmp_path, on_end=lambda: None)
    processes.watch(M, 1)
    assert processes.ended() == frozenset()
