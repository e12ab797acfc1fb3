"""Which replica another one takes the place of (ADR 0020)."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maserve.backends.triton.local.replacing import BY_HAND, Candidate, choose
from maserve.base.keys import ReplicaName

BORN = datetime(2030, 1, 1, tzinfo=UTC)
LATER = BORN + timedelta(seconds=1)


def replica(name: str, *, trouble: str = "", dead: bool = False, settled: bool = True) -> Candidate:
    return Candidate(
        name=ReplicaName(name),
        created=BORN,
        is_well=not trouble and not dead and settled,
        is_settled=settled,
        trouble=trouble,
        is_dead=dead,
    )


WELL = replica("r-0")
DEAD = replica("r-1", trouble="dead", dead=True)
HUNG = replica("r-2", trouble="hung")


@pytest.mark.parametrize(
    ("replicas", "chosen"),
    [
        pytest.param([], None, id="none"),
        pytest.param([WELL], None, id="well"),
        pytest.param([WELL, DEAD], ("r-1", "dead"), id="dead-beside-a-well-one"),
        pytest.param([DEAD], None, id="never-the-last-one"),
        pytest.param([DEAD, replica("r-3", trouble="dead", dead=True)], None, id="dead-everywhere"),
        pytest.param([replica("r-0", dead=True), WELL], None, id="a-reload-may-still-help"),
        pytest.param([HUNG], ("r-2", "hung"), id="a-hung-load-serves-until-the-next-is-ready"),
        pytest.param([HUNG, DEAD], ("r-2", "hung"), id="one-at-a-time"),
        pytest.param([WELL, HUNG, replica("r-3", settled=False)], None, id="one-is-on-its-way"),
    ],
)
def test_what_is_replaced_by_itself(
    replicas: list[Candidate], chosen: tuple[str, str] | None
) -> None:
    assert choose(replicas, {}, may_heal=True) == chosen


def test_the_back_off_holds_what_nobody_asked_for() -> None:
    assert choose([HUNG], {}, may_heal=False) is None
    assert choose([HUNG], {"r-2": LATER}, may_heal=False) == ("r-2", BY_HAND)


def test_what_is_asked_for_is_done_once() -> None:
    assert choose([WELL], {"r-0": LATER}, may_heal=True) == ("r-0", BY_HAND)
    assert choose([WELL], {"r-0": BORN}, may_heal=True) is None
    assert choose([WELL], {"another": LATER}, may_heal=True) is None


some = st.builds(
    replica,
    st.sampled_from(["r-0", "r-1", "r-2"]),
    trouble=st.sampled_from(["", "why"]),
    dead=st.booleans(),
    settled=st.booleans(),
)


@given(st.lists(some, max_size=4, unique_by=lambda each: each.name))
def test_a_dead_one_goes_only_while_another_is_well(replicas: list[Candidate]) -> None:
    chosen = choose(replicas, {}, may_heal=True)
    gone = [each for each in replicas if chosen is not None and each.name == chosen[0]]
    assert all(each.is_settled for each in replicas) or not gone
    assert not any(
        each.is_dead and not any(other.is_well for other in replicas if other is not each)
        for each in gone
    )
