"""A requirement that no replica can meet is lifted, and comes back when one can (ADR 0017)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maserve.backends.triton.local.lifting import Holding, Models, decide_lifted
from maserve.base.keys import ModelName

A, B, C = (ModelName(name) for name in "abc")


def models(names: str) -> Models:
    return frozenset(ModelName(name) for name in names)


def holding(ready: str, hopeless: str = "") -> Holding:
    return Holding(ready=models(ready), hopeless=models(hopeless))


@pytest.mark.parametrize(
    ("before", "replicas", "lifted"),
    [
        pytest.param("", [], "", id="no-replica"),
        pytest.param("b", [], "b", id="no-replica-keeps-what-was-lifted"),
        pytest.param("", [holding("ab"), holding("ab")], "", id="all-well"),
        pytest.param("", [holding("ab"), holding("a", "b")], "", id="one-is-ready"),
        pytest.param("", [holding(""), holding("")], "", id="all-are-loading"),
        pytest.param("", [holding("a"), holding("a", "b")], "", id="one-may-still-get-it"),
        pytest.param("", [holding("a", "b"), holding("a", "b")], "b", id="missing-everywhere"),
        pytest.param("", [holding("", "b"), holding("", "b")], "b", id="the-other-still-loads"),
        pytest.param("", [holding("", "ab"), holding("", "ab")], "ab", id="nothing-can-be-had"),
        pytest.param("", [holding("a", "b"), holding("b", "a")], "b", id="crossing"),
        pytest.param("b", [holding("a", "b"), holding("a", "b")], "b", id="stays-lifted"),
        pytest.param("b", [holding("a"), holding("a")], "b", id="tried-again-stays-lifted"),
        pytest.param("b", [holding("ab"), holding("a", "b")], "", id="comes-back-with-one"),
        pytest.param("b", [holding("b"), holding("a", "b")], "b", id="not-where-others-miss"),
        pytest.param("c", [holding("ab"), holding("ab")], "", id="not-serving-any-more"),
    ],
)
def test_what_is_lifted(before: str, replicas: list[Holding], lifted: str) -> None:
    assert decide_lifted(models(before), models("ab"), replicas) == models(lifted)


some_models = st.frozensets(st.sampled_from([A, B, C]))


@st.composite
def holdings(draw: st.DrawFn) -> Holding:
    ready = draw(some_models)
    return Holding(ready=ready, hopeless=draw(some_models) - ready)


@given(some_models, some_models, st.lists(holdings(), min_size=1, max_size=4))
def test_a_cluster_is_never_empty_for_good(
    before: Models, serving: Models, replicas: list[Holding]
) -> None:
    required = serving - decide_lifted(before, serving, replicas)
    assert any(not (required - each.ready) & each.hopeless for each in replicas)


@given(some_models, some_models, st.lists(holdings(), min_size=1, max_size=4))
def test_a_decision_stands_while_nothing_moves(
    before: Models, serving: Models, replicas: list[Holding]
) -> None:
    once = decide_lifted(before, serving, replicas)
    assert once <= serving
    assert decide_lifted(once, serving, replicas) == once


@given(some_models, st.lists(holdings(), min_size=1, max_size=4))
def test_nothing_is_lifted_while_a_replica_has_everything(
    serving: Models, replicas: list[Holding]
) -> None:
    whole = Holding(ready=serving, hopeless=frozenset())
    assert decide_lifted(frozenset(), serving, [*replicas, whole]) == frozenset()
