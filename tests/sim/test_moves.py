"""A Deployment that is pointed at another server: it is served all the while, wherever it ends.

The safety rules are checked after every write: the old path stays whole until the new one is.
"""

import pytest

from maserve.base.errors import Conflict
from maserve.base.keys import ClusterId, Key
from maserve.resource.annotations import PLACED_ON
from maserve.testing.builders import an_inference_server
from maserve.testing.invariants import discovery_rules, traffic_rules
from maserve.testing.simulation import Simulation
from maserve.testing.stories import (
    DEPLOYMENT,
    SERVER,
    ensure,
    first_rollout,
    picture,
    second_rollout,
    tell,
    until_stage,
)
from maserve.testing.taps import Fault, Tap
from maserve.testing.virtually import (
    crashes,
    differences,
    end_after,
    run_virtually,
    safe_tap,
    told,
)
from maserve.wire import v2

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(90),
]  # a rollout, or half of one, for every write of one

OTHER = Key("ns", "other")
COMPLETE = v2.DEPLOYMENT_STAGE_ROLLOUT_COMPLETE


async def a_second_server(sim: Simulation) -> None:
    await ensure(sim, an_inference_server("other", clusters=("c1", "c2"), replicas=2))
    serving = v2.INFERENCE_SERVER_STATE_SERVING
    await sim.until(
        v2.InferenceServer, OTHER, lambda s: s is not None and s.status.state == serving
    )


async def move(sim: Simulation, model: str = "") -> None:
    """Point the Deployment at the second server, and at a model if one is named."""
    while True:
        deployment = await sim.store.get(v2.Deployment, DEPLOYMENT)
        deployment.spec.inference_server.name = OTHER.name
        deployment.spec.desired_revision.name = model or deployment.spec.desired_revision.name
        try:
            await sim.store.update(deployment)
        except Conflict:
            continue
        return


async def fail_to_move(sim: Simulation) -> None:
    """Point the Deployment at another server and a model that no replica can load."""
    sim.world.broken["m3"] = "weights are missing"
    await move(sim, model="m3")
    await until_stage(sim, v2.DEPLOYMENT_STAGE_ROLLBACK_COMPLETE)
    await sim.clock.sleep(60)


async def arrive(sim: Simulation) -> None:
    await move(sim)
    await sim.until(v2.Deployment, DEPLOYMENT, _has_arrived)
    await sim.clock.sleep(60)


def test_a_move_at_any_write_of_a_rollout_leaves_nothing_behind() -> None:
    for at in _every_write():
        sim = run_virtually(_moved_at(at))
        assert _has_arrived(sim.deployments()[0]), at
        assert _held(sim, SERVER) == [[], [], 0], at
        assert _held(sim, OTHER) == [["m2"], ["m2"], 3], at


def test_a_crash_at_any_write_of_a_move_changes_nothing_in_the_end() -> None:
    before = (first_rollout, a_second_server)
    undisturbed = picture(run_virtually(told(*before, arrive)))
    crashed = run_virtually(crashes(before, arrive, Fault.CRASH_BEFORE))
    assert len(crashed) >= 10
    for at, crash in enumerate(crashed, 1):
        assert differences(undisturbed, run_virtually(end_after(crash, arrive))) == [], at


def test_a_move_that_fails_leaves_everything_as_it_was() -> None:
    async def story() -> tuple[Simulation, object]:
        sim = await told(first_rollout, a_second_server)
        before = _of_server(sim, SERVER)
        await tell(sim, fail_to_move, safe_tap(sim))
        return sim, before

    sim, before = run_virtually(story())

    (deployment,) = sim.deployments()
    assert _of_server(sim, SERVER) == before
    assert _held(sim, OTHER) == [[], [], 0]
    assert deployment.metadata.annotations[PLACED_ON] == SERVER.name
    assert deployment.status.state == v2.DEPLOYMENT_STATE_HEALTHY
    assert "rollout of m3 on server other failed" in deployment.status.message
    assert "rolling back to m1 on server is" in deployment.status.message
    assert "weights are missing" in deployment.status.message


def test_a_crash_at_any_write_of_a_failing_move_changes_nothing_in_the_end() -> None:
    before = (first_rollout, a_second_server)
    undisturbed = picture(run_virtually(told(*before, fail_to_move)))
    crashed = run_virtually(crashes(before, fail_to_move, Fault.CRASH_AFTER))
    assert len(crashed) >= 10
    for at, crash in enumerate(crashed, 1):
        assert differences(undisturbed, run_virtually(end_after(crash, fail_to_move))) == [], at


def test_a_server_that_is_not_there_is_waited_for_while_the_old_one_serves() -> None:
    async def story() -> tuple[Simulation, str]:
        sim = await told(first_rollout)
        tap = safe_tap(sim)

        async def mistype(each: Simulation) -> None:
            await move(each)
            await each.clock.sleep(600)
            waiting = each.deployments()[0].status.conditions[0].message
            assert "InferenceServer ns/other not found" in waiting
            await until_stage(each, v2.DEPLOYMENT_STAGE_ROLLBACK_COMPLETE)
            await each.clock.sleep(60)

        await tell(sim, mistype, tap)
        return sim, sim.deployments()[0].status.message

    sim, message = run_virtually(story())
    assert "InferenceServer ns/other not found" in message
    assert _held(sim, SERVER) == [["m1"], ["m1"], 3]
    assert sim.deployments()[0].status.state == v2.DEPLOYMENT_STATE_HEALTHY


async def _moved_at(at: int) -> Simulation:
    sim = await told(first_rollout, a_second_server)

    async def story(each: Simulation) -> None:
        await second_rollout(each)
        await arrive(each)

    await tell(sim, story, Tap(safe_tap(sim).check, at=at, meanwhile=lambda: move(sim)))
    return sim


def _every_write() -> range:
    async def count() -> int:
        sim = await told(first_rollout, a_second_server)
        return (await tell(sim, second_rollout, safe_tap(sim))).count

    return range(1, run_virtually(count()) + 1, 2)


def _has_arrived(deployment: v2.Deployment | None) -> bool:
    return (
        deployment is not None
        and deployment.metadata.annotations.get(PLACED_ON) == OTHER.name
        and deployment.status.stage == COMPLETE
    )


def _of_server(sim: Simulation, server: Key) -> object:
    """Return what there is on a server: entries and rules, in every cluster."""
    lists = [sim.model_config.find_entries(server, ClusterId(c)) for c in ("c1", "c2")]
    traffic = [traffic_rules(sim, server, ClusterId(c)) for c in ("c1", "c2")]
    return lists, traffic, discovery_rules(sim, server)


def _held(sim: Simulation, server: Key) -> list[object]:
    """Return the entries in both clusters, and how many rules there are for the Deployment."""
    lists = [sim.model_config.find_entries(server, ClusterId(c)) or () for c in ("c1", "c2")]
    traffic = [rule for c in ("c1", "c2") for rule in traffic_rules(sim, server, ClusterId(c))]
    found = [*traffic, *discovery_rules(sim, server)]
    own = [rule for rule in found if rule.match_path.endswith(f"/{DEPLOYMENT.name}")]
    return [*([entry.name for entry in each] for each in lists), len(own)]
