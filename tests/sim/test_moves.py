"""A Deployment that is pointed at another server: nothing stays behind, whenever that happens."""

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


async def move(sim: Simulation) -> None:
    """Point the Deployment at the second server, as a user would."""
    while True:
        deployment = await sim.store.get(v2.Deployment, DEPLOYMENT)
        deployment.spec.inference_server.name = OTHER.name
        try:
            await sim.store.update(deployment)
        except Conflict:
            continue
        return


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


def _held(sim: Simulation, server: Key) -> list[object]:
    """Return the entries in both clusters, and how many rules there are for the Deployment."""
    lists = [sim.model_config.find_entries(server, ClusterId(c)) or () for c in ("c1", "c2")]
    traffic = [rule for c in ("c1", "c2") for rule in traffic_rules(sim, server, ClusterId(c))]
    found = [*traffic, *discovery_rules(sim, server)]
    own = [rule for rule in found if rule.match_path.endswith(f"/{DEPLOYMENT.name}")]
    return [*([entry.name for entry in each] for each in lists), len(own)]
