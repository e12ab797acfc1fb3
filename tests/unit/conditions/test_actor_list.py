"""A fixed list of actors, and dropping conditions that belong to nobody."""

import pytest

from maserve.conditions import TRUE, ActorList, keep_conditions
from maserve.testing.actors_fake import ScriptedActor
from maserve.testing.builders import a_condition, a_deployment
from maserve.wire import v2


def deployment_with(*types: str) -> v2.Deployment:
    deployment = a_deployment()
    deployment.status.conditions.extend(a_condition(type_, reason=type_) for type_ in types)
    return deployment


def types_of(deployment: v2.Deployment) -> list[str]:
    return [condition.type for condition in deployment.status.conditions]


def test_actors_keep_their_order() -> None:
    first, second = ScriptedActor("B", sees=TRUE), ScriptedActor("A", sees=TRUE)

    assert ActorList[v2.Deployment]([first, second]).actors == (first, second)


def test_two_actors_of_one_type_are_refused() -> None:
    with pytest.raises(ValueError, match=r"share a type.*'A', 'A'"):
        ActorList[v2.Deployment]([ScriptedActor("A", sees=TRUE), ScriptedActor("A", sees=TRUE)])


def test_conditions_live_in_the_status() -> None:
    deployment = a_deployment()
    actors = ActorList[v2.Deployment]([])

    actors.put_condition(deployment, a_condition("A"))

    assert actors.conditions(deployment) == deployment.status.conditions
    assert types_of(deployment) == ["A"]


@pytest.mark.parametrize(
    ("there", "kept", "left"),
    [
        pytest.param(["A", "B"], ["A"], ["A"], id="drops-the-others"),
        pytest.param(["A", "B"], ["B", "A"], ["B", "A"], id="in-the-given-order"),
        pytest.param(["A"], ["A", "B"], ["A"], id="makes-none-up"),
        pytest.param(["A", "B"], [], [], id="nothing-kept"),
        pytest.param([], ["A"], [], id="nothing-there"),
    ],
)
def test_only_the_conditions_of_the_plugin_are_kept(
    there: list[str], kept: list[str], left: list[str]
) -> None:
    deployment = deployment_with(*there)

    keep_conditions(deployment, kept)

    assert types_of(deployment) == left
    assert [c.reason for c in deployment.status.conditions] == left
