"""The safety rules do notice what they are there for."""

import pytest

from maserve.base.keys import ClusterId, Key, ModelName
from maserve.modelconfig import Entry
from maserve.resource import names
from maserve.routing import RouteId
from maserve.testing.invariants import Violation, begun_out_of_turn, check, find_violations
from maserve.testing.simulation import Simulation
from maserve.testing.stories import DEPLOYMENT, SERVER, first_rollout, tell, want
from maserve.testing.taps import Tap
from maserve.testing.virtually import run_virtually, told
from maserve.wire import v2

C1 = v2.ClusterTarget(cluster_id="c1")


def test_a_model_that_is_routed_but_not_wanted_is_noticed() -> None:
    async def history() -> list[str]:
        sim = await told(first_rollout)
        entry = (sim.model_config.find_entries(SERVER, ClusterId("c1")) or ())[0]
        await sim.model_config.remove_model_from_config(SERVER, C1, "d", entry.name)
        return find_violations(sim)

    assert run_virtually(history()) == ["ns/is/d in c1 is routed to m1, which is not required"]


def test_a_ready_replica_without_the_routed_model_is_noticed() -> None:
    async def history() -> list[str]:
        sim = await told(first_rollout)
        replica = sim.world.groups[SERVER, ClusterId("c1")][0]
        replica.models.clear()
        replica.required.clear()
        return find_violations(sim)

    assert run_virtually(history()) == [
        "ns/is/d in c1 is routed to m1, triton-is-c1-0 lacks it",
    ]


def test_a_served_model_without_a_route_is_noticed() -> None:
    async def history() -> list[str]:
        sim = await told(first_rollout)
        key = Key("ns", names.traffic_route("is"))
        await sim.routes.delete(C1, RouteId(cluster=ClusterId("c1"), key=key))
        return find_violations(sim)

    assert run_virtually(history()) == ["d serves m1 but c1 has no rule"]


def test_a_cluster_that_begins_out_of_turn_is_noticed() -> None:
    async def history() -> list[str]:
        sim = await told(first_rollout)
        deployment = await sim.store.get(v2.Deployment, DEPLOYMENT)
        deployment.status.candidate_revision.name = "m2"
        await sim.store.update_status(deployment)
        sim.listed.clear()
        entry = Entry(name=ModelName("m2"), storage_path="file:///m2/", deployment_name="d")
        await sim.model_config.add_model_to_config(SERVER, v2.ClusterTarget(cluster_id="c2"), entry)
        return begun_out_of_turn(sim)

    assert run_virtually(history()) == ["d begins with m2 in c2 before c1 serves it"]


def test_nothing_in_a_control_plane_can_swallow_a_broken_rule() -> None:
    async def history() -> None:
        sim = await told(first_rollout)
        replica = sim.world.groups[SERVER, ClusterId("c1")][0]
        replica.models.clear()
        replica.required.clear()
        replica.once_loaded.clear()

        async def story(each: Simulation) -> None:
            await want(each, "m2")
            await each.clock.sleep(10)

        await tell(sim, story, Tap(lambda when: check(sim, when)))

    with pytest.raises(BaseExceptionGroup) as caught:
        run_virtually(history())
    assert caught.group_contains(Violation)
