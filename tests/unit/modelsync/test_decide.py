from dataclasses import replace

import pytest

from maserve.base.keys import ModelName
from maserve.modelsync.decide import decide, first_serving_at_start
from maserve.modelsync.types import (
    Action,
    EngineModel,
    EngineState,
    Failure,
    ModelState,
    Plan,
    Readiness,
    Step,
    Wanted,
    World,
)

M = ModelName("m")
WANT = Wanted(storage_path="s3://b/m", content="c1", serving=True)
STAGE = Action(step=Step.STAGE, model=M, storage_path="s3://b/m", content="c1")
LOAD = replace(STAGE, step=Step.LOAD)
PUBLISH = Action(step=Step.PUBLISH, model=M, content="c1", reason="refused")
UNLOAD = Action(step=Step.UNLOAD, model=M)
REMOVE = Action(step=Step.REMOVE, model=M)
NOW = 100.0

WANTED = World(list_readable=True, wanted={M: WANT}, engine={})
LOADED = replace(
    WANTED,
    engine={M: EngineModel(state=EngineState.READY)},
    linked={M: "c1"},
    applied={M: "c1"},
    readiness=Readiness(required=(M,)),
)
UNWANTED = replace(LOADED, wanted={}, readiness=Readiness())
STAGED = frozenset({(M, "c1")})


def failure(*, permanent: bool = False, hidden: bool = False, retry_at: float = 105.0) -> Failure:
    return Failure(
        state=ModelState.LOAD_FAILED,
        content="c1",
        reason="refused",
        permanent=permanent,
        hidden=hidden,
        count=1,
        retry_at=retry_at,
    )


def engine(state: EngineState) -> dict[ModelName, EngineModel]:
    return {M: EngineModel(state=state, reason="why")}


def plan(world: World) -> Plan:
    return decide(world, now=NOW, grace_s=2.0)


@pytest.mark.parametrize(
    ("world", "actions"),
    [
        pytest.param(WANTED, (STAGE,), id="new"),
        pytest.param(
            replace(WANTED, releasing=frozenset({"c1"})), (), id="its content is being let go of"
        ),
        pytest.param(
            replace(WANTED, engine=None), (STAGE,), id="downloads before the engine is up"
        ),
        pytest.param(replace(WANTED, staged=STAGED), (LOAD,), id="staged"),
        pytest.param(replace(WANTED, staged=STAGED, engine=None), (), id="staged, engine down"),
        pytest.param(replace(WANTED, busy={M: STAGE}), (), id="busy"),
        pytest.param(LOADED, (), id="loaded"),
        pytest.param(replace(LOADED, applied={}), (STAGE,), id="ready from an unknown content"),
        pytest.param(replace(LOADED, linked={M: "c0"}), (STAGE,), id="ready from an earlier one"),
        pytest.param(
            replace(LOADED, engine=engine(EngineState.UNLOADED), staged=STAGED),
            (LOAD,),
            id="engine started anew",
        ),
        pytest.param(replace(LOADED, engine=engine(EngineState.LOADING)), (), id="loading"),
        pytest.param(replace(LOADED, engine=engine(EngineState.UNLOADING)), (), id="unloading"),
        pytest.param(replace(WANTED, failures={M: failure()}), (), id="waits for its retry"),
        pytest.param(
            replace(WANTED, failures={M: failure(retry_at=99.0)}), (STAGE,), id="retry is due"
        ),
        pytest.param(
            replace(WANTED, failures={M: replace(failure(), content="c0")}),
            (STAGE,),
            id="failure of another content",
        ),
        pytest.param(
            replace(WANTED, failures={M: failure(permanent=True, hidden=True)}),
            (PUBLISH,),
            id="failure the index does not show",
        ),
        pytest.param(
            replace(LOADED, applied={}, failures={M: failure(permanent=True, hidden=True)}),
            (),
            id="failure never replaces a live model",
        ),
        pytest.param(
            replace(
                WANTED,
                engine=engine(EngineState.FAILED),
                failures={M: failure(permanent=True, hidden=False)},
            ),
            (),
            id="failure is shown",
        ),
        pytest.param(
            replace(
                WANTED,
                failures={M: replace(failure(permanent=True, hidden=True), publish_at=101.0)},
            ),
            (),
            id="publishing failed a moment ago",
        ),
        pytest.param(
            replace(WANTED, staged=STAGED, failures={M: failure(permanent=True)}),
            (LOAD,),
            id="a new engine does not know of the failed load",
        ),
        pytest.param(
            replace(WANTED, wanted={M: replace(WANT, fault="bad name")}), (), id="bad name"
        ),
        pytest.param(
            replace(WANTED, list_readable=False),
            (STAGE,),
            id="unreadable list: last one is kept up",
        ),
        pytest.param(World(list_readable=False, wanted=None, engine={}), (), id="never read"),
    ],
)
def test_wanted_model_is_brought_up(world: World, actions: tuple[Action, ...]) -> None:
    assert plan(world).actions == actions


@pytest.mark.parametrize(
    ("world", "actions"),
    [
        pytest.param(UNWANTED, (), id="grace begins"),
        pytest.param(replace(UNWANTED, unwanted_since={M: 98.5}), (), id="grace runs"),
        pytest.param(replace(UNWANTED, unwanted_since={M: 98.0}), (UNLOAD,), id="grace is over"),
        pytest.param(
            replace(UNWANTED, unwanted_since={M: 1.0}, readiness=Readiness(required=(M,))),
            (),
            id="still on the readiness list",
        ),
        pytest.param(
            replace(UNWANTED, unwanted_since={M: 1.0}, list_readable=False),
            (),
            id="list unreadable",
        ),
        pytest.param(replace(UNWANTED, unwanted_since={M: 1.0}, engine=None), (), id="engine down"),
        pytest.param(replace(UNWANTED, engine=engine(EngineState.UNLOADING)), (), id="unloading"),
        pytest.param(replace(UNWANTED, engine=engine(EngineState.LOADING)), (), id="loading"),
        pytest.param(replace(UNWANTED, engine=engine(EngineState.UNLOADED)), (REMOVE,), id="gone"),
        pytest.param(replace(UNWANTED, engine=engine(EngineState.FAILED)), (REMOVE,), id="failed"),
        pytest.param(replace(UNWANTED, busy={M: UNLOAD}), (), id="busy"),
        pytest.param(
            replace(UNWANTED, linked={}, applied={}, unwanted_since={M: 1.0}), (), id="not ours"
        ),
        pytest.param(
            replace(
                UNWANTED,
                unwanted_since={M: 1.0},
                failures={M: replace(failure(), state=ModelState.UNLOADING, content="")},
            ),
            (),
            id="unload is retried later",
        ),
    ],
)
def test_unwanted_model_is_taken_down(world: World, actions: tuple[Action, ...]) -> None:
    assert plan(world).actions == actions


def test_grace_begins_when_the_model_has_left_the_readiness_list() -> None:
    listed = replace(UNWANTED, unwanted_since={M: 1.0}, readiness=Readiness(required=(M,)))
    assert plan(listed).unwanted_since == {M: NOW}
    assert plan(replace(listed, readiness=Readiness())).unwanted_since == {M: 1.0}


@pytest.mark.parametrize("step", [STAGE, LOAD], ids=["download", "load"])
def test_obsolete_step_is_cancelled(step: Action) -> None:
    assert plan(replace(WANTED, busy={M: replace(step, content="c0")})).cancel == (M,)
    assert plan(replace(WANTED, wanted={}, busy={M: step})).cancel == (M,)
    assert plan(replace(WANTED, busy={M: step})).cancel == ()
    assert plan(replace(WANTED, wanted={}, busy={M: UNLOAD})).cancel == ()


def test_only_contents_nobody_needs_are_released() -> None:
    held = frozenset({"wanted", "linked", "applied", "busy", "free"})
    world = World(
        list_readable=True,
        wanted={M: replace(WANT, content="wanted")},
        engine={},
        linked={M: "linked"},
        applied={M: "applied"},
        busy={M: replace(STAGE, content="busy")},
        held=held,
    )
    assert plan(world).release == ("free",)
    assert plan(replace(world, list_readable=False)).release == ()


@pytest.mark.parametrize(
    ("world", "required", "pending"),
    [
        pytest.param(LOADED, (M,), (), id="ready"),
        pytest.param(replace(LOADED, readiness=Readiness()), (M,), (), id="becomes required"),
        pytest.param(
            replace(WANTED, readiness=Readiness()), (), (M,), id="not required before it is ready"
        ),
        pytest.param(replace(LOADED, engine={}), (M,), (), id="stays when the engine restarts"),
        pytest.param(
            replace(LOADED, engine={}, readiness=Readiness()), (M,), (), id="promoted in a restart"
        ),
        pytest.param(replace(LOADED, engine=None), (M,), (), id="stays when it does not answer"),
        pytest.param(replace(LOADED, wanted={}), (), (), id="dropped as soon as unwanted"),
        pytest.param(
            replace(LOADED, wanted={M: replace(WANT, serving=False)}), (), (), id="only serving"
        ),
        pytest.param(replace(LOADED, wanted={}, list_readable=False), (M,), (), id="unreadable"),
    ],
)
def test_readiness_list(
    world: World, required: tuple[ModelName, ...], pending: tuple[ModelName, ...]
) -> None:
    assert plan(world).readiness == Readiness(required=required, pending=pending)


@pytest.mark.parametrize(
    ("world", "exists"),
    [
        pytest.param(replace(WANTED, first_serving=frozenset({M})), False, id="not loaded"),
        pytest.param(
            replace(WANTED, engine=None, first_serving=frozenset()), False, id="no engine"
        ),
        pytest.param(
            replace(LOADED, readiness=None, first_serving=frozenset({M})), True, id="ready"
        ),
        pytest.param(
            replace(WANTED, wanted={}, first_serving=frozenset({M})), True, id="no longer serving"
        ),
        pytest.param(replace(WANTED, first_serving=frozenset()), True, id="came later"),
    ],
)
def test_file_first_appears_with_everything_that_was_serving(world: World, exists: bool) -> None:
    assert (plan(world).readiness is not None) is exists


@pytest.mark.parametrize(
    ("readiness", "state", "gate"),
    [
        pytest.param(None, EngineState.READY, frozenset({M}), id="no file"),
        pytest.param(Readiness(required=(M,)), EngineState.READY, None, id="all required is ready"),
        pytest.param(
            Readiness(required=(M,)), EngineState.UNLOADED, frozenset({M}), id="engine is new"
        ),
        pytest.param(Readiness(), EngineState.READY, None, id="nothing required, nothing missing"),
        pytest.param(
            Readiness(),
            EngineState.UNLOADED,
            frozenset({M}),
            id="nothing required, something missing",
        ),
    ],
)
def test_file_of_an_earlier_process(
    readiness: Readiness | None, state: EngineState, gate: frozenset[ModelName] | None
) -> None:
    assert first_serving_at_start(readiness, {M: WANT}, engine(state)) == gate


def test_next_look_is_when_a_retry_or_a_grace_ends() -> None:
    assert plan(UNWANTED).next_at == NOW + 2.0
    assert plan(replace(WANTED, failures={M: failure()})).next_at == 105.0
    assert plan(LOADED).next_at is None
