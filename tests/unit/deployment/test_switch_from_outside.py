"""A switch counts only once a request from outside is answered by the new model."""

import pytest

from maserve.conditions import TRUE, UNKNOWN
from maserve.deployment.stock.rollout.traffic import Traffic
from maserve.modelconfig import Phase
from maserve.testing.builders import a_deployment
from maserve.testing.control_rig import ControlRig
from maserve.testing.expect import act, expect_condition, look
from maserve.wire import v2


@pytest.fixture
async def switched(rig: ControlRig) -> ControlRig:
    """Return a rig whose route points at m2 already."""
    await rig.provide(clusters=("c1", "c2"))
    await rig.serve("m1")
    await rig.list_model("m2", Phase.STAGED)
    await act(Traffic(rig.site()), _deployment())
    return rig


@pytest.mark.parametrize(
    ("stuck_on", "who"), [("m1", "answered by model m1"), ("", "answered by no model")]
)
async def test_an_acknowledged_route_that_answers_otherwise_does_not_count(
    switched: ControlRig, stuck_on: str, who: str
) -> None:
    switched.probe.stuck_on = stuck_on
    condition = await look(Traffic(switched.site()), _deployment())
    expect_condition(condition, UNKNOWN, "TrafficNotSwitched", says=who)


async def test_a_data_plane_out_of_reach_is_believed_by_its_acknowledgement(
    switched: ControlRig,
) -> None:
    switched.probe.blind = True
    expect_condition(await look(Traffic(switched.site()), _deployment()), TRUE)


async def test_a_switch_that_was_seen_is_not_asked_for_again(switched: ControlRig) -> None:
    actor = Traffic(switched.site())
    seen = await look(actor, _deployment())
    switched.probe.stuck_on = "m1"
    expect_condition(await actor.retrieve(_deployment(), seen), TRUE)


def _deployment() -> v2.Deployment:
    return a_deployment(desired="m2", candidate="m2", current="m1", placed=["c1", "c2"])
