"""A cluster begins only while every earlier one serves the model healthily."""

from collections.abc import Awaitable, Callable

import pytest

from maserve.base.errors import Unavailable
from maserve.base.keys import ClusterId, ModelName
from maserve.conditions import FALSE, UNKNOWN
from maserve.deployment.stock.rollout.canary import Canary
from maserve.deployment.stock.rollout.rolling import Rolling
from maserve.deployment.stock.site import Site
from maserve.deployment.stock.step import Step
from maserve.modelconfig import Phase
from maserve.testing.builders import SERVER, a_deployment, a_model
from maserve.testing.control_rig import ControlRig
from maserve.testing.expect import act, expect_condition
from maserve.wire import v2

BUDGET_S = 900.0
C1 = ClusterId("c1")
Illness = Callable[[ControlRig], Awaitable[None]]


@pytest.fixture
async def served(rig: ControlRig) -> ControlRig:
    """Have m2 serving in c1, with m1 beside it."""
    await rig.provide(clusters=("c1", "c2"))
    await rig.store.create(a_model("m2"))
    await rig.serve("m1")
    await rig.serve("m2")
    return rig


@pytest.fixture
def deployment() -> v2.Deployment:
    return a_deployment(desired="m2", candidate="m2", current="m1", placed=["c1", "c2"])


@pytest.fixture(params=[Canary, Rolling], ids=["canary", "rolling"])
def first(request: pytest.FixtureRequest, served: ControlRig) -> Step:
    """Return the step that begins in c2: a canary, or the rolling load where that is left out."""
    kind: type[Canary | Rolling] = request.param
    earlier: tuple[Site, ...] = (served.site("c1"),)
    return kind(served.site("c2"), earlier)


async def test_a_cluster_begins_when_the_earlier_one_serves(
    served: ControlRig, deployment: v2.Deployment, first: Step
) -> None:
    await act(first, deployment)

    assert "m2" in served.entries("c2")


async def kill_one(rig: ControlRig) -> None:
    rig.world.kill(SERVER, C1, 0)


async def route_elsewhere(rig: ControlRig) -> None:
    await rig.site("c1").route_to(ModelName("m1"), "Seed")


async def require_no_more(rig: ControlRig) -> None:
    await rig.list_model("m2", Phase.STAGED)


async def answer_with_another(rig: ControlRig) -> None:
    rig.probe.stuck_on = "m1"


async def answer_nothing(rig: ControlRig) -> None:
    rig.probe.stuck_on = ""


@pytest.mark.parametrize(
    ("illness", "says"),
    [
        pytest.param(kill_one, "model m2 in cluster c1: 1/2 replicas ready", id="one-replica-dead"),
        pytest.param(route_elsewhere, "cluster c1 does not serve model m2", id="routed-elsewhere"),
        pytest.param(require_no_more, "cluster c1 does not serve model m2", id="not-required"),
        pytest.param(answer_with_another, "is answered by model m1, not by m2", id="another"),
        pytest.param(answer_nothing, "is answered by no model, not by m2", id="nobody-answers"),
    ],
)
async def test_a_cluster_waits_while_the_earlier_one_does_not_serve(
    served: ControlRig,
    deployment: v2.Deployment,
    first: Step,
    illness: Illness,
    says: str,
) -> None:
    await illness(served)

    expect_condition(await act(first, deployment), UNKNOWN, "EarlierClusterNotServing", says=says)

    assert served.entries("c2") == {}


async def test_a_data_plane_that_cannot_be_asked_holds_nothing(
    served: ControlRig, deployment: v2.Deployment, first: Step
) -> None:
    served.probe.blind = True

    await act(first, deployment)

    assert "m2" in served.entries("c2")


async def test_an_earlier_cluster_that_cannot_be_asked_is_waited_for(
    served: ControlRig, deployment: v2.Deployment, first: Step
) -> None:
    served.model_config.broken[SERVER, C1] = Unavailable("c1 is away")

    expect_condition(
        await act(first, deployment), UNKNOWN, "ModelConfigReadFailed", says="c1 is away"
    )
    assert served.entries("c2") == {}


async def test_waiting_for_an_earlier_cluster_has_the_steps_budget(
    served: ControlRig, deployment: v2.Deployment, first: Step
) -> None:
    served.world.start_s = 1e9
    await kill_one(served)
    await act(first, deployment)
    served.advance(BUDGET_S)

    condition = await act(first, deployment)

    assert condition.status == FALSE
    assert condition.message.startswith("EarlierClusterNotServing: model m2 in cluster c1: 1/2")
