"""Clusters that come and go while a rollout is under way."""

import pytest

from maserve.base.errors import Conflict
from maserve.base.keys import ClusterId
from maserve.testing.simulation import Simulation
from maserve.testing.stories import (
    SERVER,
    first_rollout,
    second_rollout,
    tell,
    until_live,
    want,
)
from maserve.testing.taps import Tap
from maserve.testing.virtually import run_virtually, safe_tap, told
from maserve.wire import v2

pytestmark = pytest.mark.timeout(120)  # a run of a whole rollout for every write of it


async def use_clusters(sim: Simulation, *clusters: str) -> None:
    """Write the server's cluster targets, as a user would."""
    while True:
        server = await sim.store.get(v2.InferenceServer, SERVER)
        del server.spec.cluster_targets[:]
        server.spec.cluster_targets.extend(v2.ClusterTarget(cluster_id=c) for c in clusters)
        try:
            await sim.store.update(server)
        except Conflict:
            continue
        return


@pytest.mark.parametrize("left", ["c1", "c2"])
def test_a_cluster_removed_at_any_write_does_not_hold_the_rollout_up(left: str) -> None:
    ends = [run_virtually(_removed_at(at, left)) for at in _every_write()]
    assert {stages for stages, _ in ends} == {("m2", v2.DEPLOYMENT_STAGE_ROLLOUT_COMPLETE)}
    assert {groups for _, groups in ends} == {(left,)}


def test_a_cluster_added_later_gets_the_model_without_a_new_rollout() -> None:
    async def history() -> tuple[tuple[str, ...], str]:
        sim = await told(first_rollout)

        async def story(each: Simulation) -> None:
            await use_clusters(each, "c1", "c2", "c3")
            await each.clock.sleep(60)

        await tell(sim, story, safe_tap(sim))
        (deployment,) = sim.deployments()
        routed = tuple(
            cluster for _, cluster in sorted(sim.world.groups, key=str) if _serves(sim, cluster)
        )
        return routed, deployment.metadata.annotations["deployment.rollout.count"]

    assert run_virtually(history()) == (("c1", "c2", "c3"), "0")


async def _removed_at(
    at: int, left: str
) -> tuple[tuple[str, "v2.DeploymentStage"], tuple[str, ...]]:
    """Roll out m2, remove the other cluster right after write `at`, and return how it ends."""
    sim = await told(first_rollout)

    async def story(each: Simulation) -> None:
        await want(each, "m2")
        await until_live(each, "m2")
        await each.clock.sleep(60)

    tap = Tap(safe_tap(sim).check, at=at, meanwhile=lambda: use_clusters(sim, left))
    await tell(sim, story, tap)
    (deployment,) = sim.deployments()
    end = deployment.status.current_revision.name, deployment.status.stage
    return end, tuple(sorted(cluster for _, cluster in sim.world.groups))


def _every_write() -> range:
    async def count() -> int:
        sim = await told(first_rollout)
        return (await tell(sim, second_rollout, safe_tap(sim))).count

    return range(1, run_virtually(count()) + 1, 2)


def _serves(sim: Simulation, cluster: str) -> bool:
    entries = sim.model_config.find_entries(SERVER, ClusterId(cluster))
    return [entry.name for entry in entries or ()] == ["m1"]
