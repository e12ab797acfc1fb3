"""What to start and drain next: tables, and rolls played to their end."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maserve.backends.triton.local.decide import Life, Plan, Standing, decide
from maserve.base.keys import ReplicaName

OLD, NEW = "old", "new"


def one(
    ordinal: int, template: str = NEW, life: Life = Life.RUNNING, ready: bool = True
) -> Standing:
    return Standing(
        name=ReplicaName(f"r{ordinal}"),
        ordinal=ordinal,
        template=template,
        life=life,
        ready=ready and life is Life.RUNNING,
    )


def starting(ordinal: int, template: str = NEW) -> Standing:
    return one(ordinal, template, Life.STARTING)


def draining(ordinal: int, template: str = NEW) -> Standing:
    return one(ordinal, template, Life.DRAINING)


def drain(*ordinals: int) -> Plan:
    return Plan(drain=tuple(ReplicaName(f"r{ordinal}") for ordinal in ordinals))


@pytest.mark.parametrize(
    ("wanted", "there", "plan"),
    [
        pytest.param(2, [], Plan(start=(0, 1)), id="from nothing"),
        pytest.param(2, [one(0), one(1)], Plan(), id="as wished"),
        pytest.param(2, [one(0), starting(1)], Plan(), id="on the way"),
        pytest.param(3, [one(0), one(2)], Plan(start=(1,)), id="lowest free ordinal"),
        pytest.param(
            2**31 - 1, [one(0)], Plan(start=tuple(range(1, 17))), id="some of very many at a time"
        ),
        pytest.param(
            100, [starting(n) for n in range(15)], Plan(start=(15,)), id="no more at a time"
        ),
        pytest.param(100, [starting(n) for n in range(16)], Plan(), id="as many as may start"),
        pytest.param(
            17,
            [starting(n, OLD) for n in range(16)],
            Plan(start=(16,)),
            id="old ones that never came up block none",
        ),
        pytest.param(1, [draining(0)], Plan(start=(1,)), id="a draining name is not free"),
        pytest.param(1, [one(0), one(1), one(2)], drain(2, 1), id="highest ordinals go"),
        pytest.param(1, [starting(0), one(1)], drain(0), id="not ready goes first"),
        pytest.param(0, [one(0), starting(1)], drain(1, 0), id="everything goes"),
        pytest.param(0, [draining(0)], Plan(), id="going already"),
        pytest.param(2, [one(0, OLD), one(1, OLD)], Plan(start=(2,)), id="roll: one more first"),
        pytest.param(
            2, [one(0, OLD), one(1, OLD), starting(2)], Plan(), id="roll: wait until it is ready"
        ),
        pytest.param(2, [one(0, OLD), one(1, OLD), one(2)], drain(1), id="roll: one old goes"),
        pytest.param(
            2,
            [one(0, OLD), draining(1, OLD), one(2)],
            Plan(),
            id="roll: the next waits until it is gone",
        ),
        pytest.param(2, [one(0, OLD), one(2)], Plan(start=(1,)), id="roll: the next"),
        pytest.param(2, [one(0, OLD), one(1), one(2)], drain(0), id="roll: the last old"),
        pytest.param(
            2,
            [starting(0, OLD), one(1, OLD), one(2)],
            drain(0),
            id="roll: an old one that is not ready goes first",
        ),
        pytest.param(
            2,
            [one(0, OLD), one(1, OLD), starting(2, OLD)],
            drain(2),
            id="roll: another change drops what was on its way",
        ),
        pytest.param(
            1,
            [one(0, OLD), one(1, OLD), one(2, OLD)],
            drain(2, 1),
            id="roll and fewer: the surplus goes at once",
        ),
        pytest.param(
            3, [one(0, OLD), one(1, OLD)], Plan(start=(2,)), id="roll and more: new ones are new"
        ),
        pytest.param(
            1, [one(0, OLD), one(1), one(2)], drain(0), id="roll and fewer: old ones go first"
        ),
    ],
)
def test_next_step(wanted: int, there: list[Standing], plan: Plan) -> None:
    assert decide(wanted, NEW, there) == plan


def step(wanted: int, template: str, there: tuple[Standing, ...]) -> tuple[Standing, ...]:
    """Do what was decided, and let the world go on: what drains is gone, what starts is ready."""
    plan = decide(wanted, template, there)
    kept = tuple(
        one(standing.ordinal, standing.template)
        for standing in there
        if standing.life is not Life.DRAINING and standing.name not in plan.drain
    )
    leaving = tuple(
        draining(standing.ordinal, standing.template)
        for standing in there
        if standing.name in plan.drain
    )
    return kept + leaving + tuple(starting(ordinal, template) for ordinal in plan.start)


SOME = st.lists(
    st.tuples(st.sampled_from([OLD, NEW]), st.sampled_from(list(Life)), st.booleans()), max_size=6
)


@given(some=SOME, wanted=st.integers(0, 4))
def test_every_start_comes_to_its_end(some: list[tuple[str, Life, bool]], wanted: int) -> None:
    there = tuple(one(number, *row) for number, row in enumerate(some))
    for _ in range(40):
        there = step(wanted, NEW, there)

    assert len(there) == wanted
    assert all(standing.template == NEW and standing.ready for standing in there)


@given(some=SOME, wanted=st.integers(1, 4))
def test_no_step_takes_readiness_below_what_is_wanted(
    some: list[tuple[str, Life, bool]], wanted: int
) -> None:
    there = tuple(one(number, *row) for number, row in enumerate(some))
    plan = decide(wanted, NEW, there)
    ready = [standing for standing in there if standing.ready]
    lost = [standing for standing in ready if standing.name in plan.drain]

    assert not lost or len(ready) - len(lost) >= wanted or len(ready) > wanted
    assert not (plan.start and plan.drain)
