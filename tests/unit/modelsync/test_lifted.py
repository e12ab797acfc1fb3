"""A requirement that the control plane has lifted is not written for the probe (ADR 0017)."""

from dataclasses import replace
from pathlib import Path

import pytest

from maserve.base.keys import ModelName
from maserve.modelsync.decide import decide
from maserve.modelsync.listfile import LIFTED_NAME, LiftedFile
from maserve.modelsync.types import EngineModel, EngineState, Readiness, Wanted, World

A, B = ModelName("a"), ModelName("b")
READY, UNLOADED = EngineState.READY, EngineState.UNLOADED


def world(*, b: EngineState, lifted: set[ModelName], first: bool = False) -> World:
    """Both models serve here and were loaded once; `first`: nothing was written yet."""
    return World(
        list_readable=True,
        wanted={
            model: Wanted(storage_path=f"s3://b/{model}", content=model, serving=True)
            for model in (A, B)
        },
        engine={A: EngineModel(state=READY), B: EngineModel(state=b)},
        linked={A: "a", B: "b"},
        applied={A: "a", B: "b"},
        readiness=None if first else Readiness(required=(A, B)),
        first_serving=frozenset({A, B}) if first else None,
        lifted=frozenset(lifted),
    )


@pytest.mark.parametrize(
    ("given", "readiness"),
    [
        pytest.param(
            world(b=UNLOADED, lifted=set()), Readiness(required=(A, B)), id="stays-required"
        ),
        pytest.param(
            world(b=UNLOADED, lifted={B}), Readiness(required=(A,), pending=(B,)), id="lifted"
        ),
        pytest.param(
            world(b=READY, lifted={B}), Readiness(required=(A,), pending=(B,)), id="until-told"
        ),
        pytest.param(
            replace(world(b=READY, lifted=set()), readiness=Readiness(required=(A,), pending=(B,))),
            Readiness(required=(A, B)),
            id="required-again",
        ),
        pytest.param(world(b=UNLOADED, lifted=set(), first=True), None, id="first-waits"),
        pytest.param(
            world(b=UNLOADED, lifted={B}, first=True),
            Readiness(required=(A,), pending=(B,)),
            id="first-does-not-wait-for-it",
        ),
    ],
)
def test_the_readiness_list(given: World, readiness: Readiness | None) -> None:
    assert decide(given, now=0.0, grace_s=2.0).readiness == readiness


def test_the_names_lie_beside_the_list_or_in_the_mounted_folder(tmp_path: Path) -> None:
    (tmp_path / LIFTED_NAME).write_text('["b"]')
    assert LiftedFile(tmp_path / "model-list.json").read() == {B}
    assert LiftedFile(tmp_path).read() == {B}


def test_without_the_file_nothing_is_lifted(tmp_path: Path) -> None:
    assert LiftedFile(tmp_path / "model-list.json").read() == frozenset()


def test_what_cannot_be_read_changes_nothing(tmp_path: Path) -> None:
    file = LiftedFile(tmp_path)
    (tmp_path / LIFTED_NAME).write_text('["b"]')
    assert file.read() == {B}
    (tmp_path / LIFTED_NAME).write_text("{")
    assert file.read() == {B}
