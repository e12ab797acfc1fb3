"""What is not required is decided from what replicas have, and written for model-sync."""

import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest

from maserve.backends import LoadState
from maserve.backends.triton.local.requirements import Requirements
from maserve.base.keys import ModelName, ReplicaName
from maserve.host import Worker
from maserve.testing.clock import FakeClock

A, B = ModelName("a"), ModelName("b")
READY, LOADING, FAILED = LoadState.READY, LoadState.LOADING, LoadState.FAILED
HOLD_S = 30.0


class Replica:
    def __init__(self, name: str, **states: LoadState) -> None:
        self.name = ReplicaName(name)
        self.states: Mapping[ModelName, LoadState] | None = {
            ModelName(model): state for model, state in states.items()
        }

    def serving_states(self) -> Mapping[ModelName, LoadState] | None:
        return self.states


@pytest.fixture
async def files() -> AsyncIterator[Worker]:
    worker = Worker("test-files")
    yield worker
    worker.close()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lifted-requirements.json"


@pytest.fixture
def requirements(path: Path, clock: FakeClock, files: Worker) -> Requirements:
    return Requirements(path, clock=clock, files=files, hold_s=HOLD_S)


async def test_a_model_that_failed_everywhere_is_written_down(
    requirements: Requirements, path: Path
) -> None:
    replicas = [Replica("r-0", a=READY, b=FAILED), Replica("r-1", a=READY, b=FAILED)]

    await requirements.settle(replicas)

    assert requirements.lifted == {B}
    assert json.loads(path.read_text()) == ["b"]


async def test_a_load_under_way_is_waited_for_as_long_as_the_hold(
    requirements: Requirements, clock: FakeClock, path: Path
) -> None:
    replicas = [Replica("r-0", a=READY, b=LOADING)]

    assert await requirements.settle(replicas) == HOLD_S
    assert not path.exists()
    clock.advance(HOLD_S)
    assert await requirements.settle(replicas) is None
    assert requirements.lifted == {B}


async def test_a_replica_that_does_not_answer_decides_nothing(
    requirements: Requirements, path: Path
) -> None:
    silent = Replica("r-0")
    silent.states = None

    assert await requirements.settle([silent]) is None
    assert not path.exists()


async def test_another_process_goes_on_from_the_file(
    path: Path, clock: FakeClock, files: Worker
) -> None:
    path.write_text('["b"]')
    requirements = Requirements(path, clock=clock, files=files, hold_s=HOLD_S)

    await requirements.settle([Replica("r-0", a=READY, b=LOADING)])
    assert requirements.lifted == {B}
    await requirements.settle([Replica("r-0", a=READY, b=READY)])
    assert (requirements.lifted, json.loads(path.read_text())) == (frozenset(), [])


@pytest.mark.parametrize("text", ["", "{", "7", '{"b": 1}'])
async def test_a_damaged_file_lifts_nothing(
    path: Path, clock: FakeClock, files: Worker, text: str
) -> None:
    path.write_text(text)
    requirements = Requirements(path, clock=clock, files=files, hold_s=HOLD_S)

    await requirements.settle([Replica("r-0", a=READY, b=LOADING)])

    assert requirements.lifted == frozenset()


async def test_the_file_goes_with_the_server(requirements: Requirements, path: Path) -> None:
    await requirements.settle([Replica("r-0", a=READY, b=FAILED)])
    await requirements.forget()
    assert not path.exists()
