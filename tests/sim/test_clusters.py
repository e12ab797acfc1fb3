"""Clusters that come and go while a rollout is under way."""

import pytest

from maserve.base.errors import Conflict
from maserve.base.keys import ClusterId
from maserve.testing.invariants import Violation, routed_but_not_loaded
from maserve.testing.simulation import Simulation
from maserve.testing.stories import (
    SERVER,
    Story,
    failing_rollout,
    first_rollout,
    second_rollout,
    tell,
)
from maserve.testing.taps import Tap
from maserve.testing.virtually import run_virtually, safe_tap, told
from maserve.wire import v2

pytestmark = [pytest.mark.slow, pytest.mark.timeout(90)]  # a rollout for every other write of one

COMPLETE = v2.DEPLOYMENT_STAGE_ROLLOUT_COMPLETE
ROLLED_BACK = v2.DEPLOYMENT_STAGE_ROLLBACK_COMPLETE

End = tuple[str, "v2.DeploymentStage", dict[str, list[str]]]
"""The current model, the stage, and what each cluster lists."""


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
    for at in _every_write(second_rollout):
        assert run_virtually(_removed_at(at, left)) == ("m2", COMPLETE, {left: ["m2"]}), at


@pytest.mark.parametrize(
    ("story", "model", "stage"),
    [
        pytest.param(second_rollout, "m2", COMPLETE, id="rollout"),
        pytest.param(failing_rollout, "m1", ROLLED_BACK, id="rollback"),
    ],
)
def test_clusters_all_replaced_at_any_write_are_no_end_of_it(
    story: Story, model: str, stage: "v2.DeploymentStage"
) -> None:
    for at in _every_write(story):
        assert run_virtually(_replaced_at(at, story)) == (model, stage, {"c3": [model]}), at


def test_a_cluster_added_later_gets_the_model_without_a_new_rollout() -> None:
    async def history() -> tuple[tuple[str, ...], str]:
        sim = await told(first_rollout)

        async def story(each: Simulation) -> None:
            await use_clusters(each, "c1", "c2", "c3")
            await each.clock.sleep(60)

        await tell(sim, story, safe_tap(sim))
        (deployment,) = sim.deployments()
        routed = tuple(
            cluster
            for _, cluster in sorted(sim.world.groups, key=str)
            if _listed(sim, cluster) == ["m1"]
        )
        return routed, deployment.metadata.annotations["deployment.rollout.count"]

    assert run_virtually(history()) == (("c1", "c2", "c3"), "0")


async def _removed_at(at: int, left: str) -> End:
    """Roll out m2, remove the other cluster right after write `at`, and return how it ends."""
    sim = await told(first_rollout)
    check = safe_tap(sim).check
    tap = Tap(check, at=at, meanwhile=lambda: use_clusters(sim, left))
    return await _end_of(sim, second_rollout, tap)


async def _replaced_at(at: int, story: Story) -> End:
    """Tell a story, with a new cluster in the place of both right after write `at`.

    The current model was never in the new one, so it need not be routed there meanwhile.
    """
    sim = await told(first_rollout)

    def check(when: str) -> None:
        if wrong := routed_but_not_loaded(sim):
            raise Violation(f"after {when}: {'; '.join(wrong)}")

    tap = Tap(check, at=at, meanwhile=lambda: use_clusters(sim, "c3"))
    return await _end_of(sim, story, tap)


async def _end_of(sim: Simulation, story: Story, tap: Tap) -> End:
    async def with_rest(each: Simulation) -> None:
        await story(each)
        await each.clock.sleep(60)

    await tell(sim, with_rest, tap)
    (deployment,) = sim.deployments()
    clusters = [cluster for _, cluster in sorted(sim.world.groups, key=str)]
    listed = {str(cluster): _listed(sim, cluster) for cluster in clusters}
    return deployment.status.current_revision.name, deployment.status.stage, listed


def _every_write(story: Story) -> range:
    async def count() -> int:
        sim = await told(first_rollout)
        return (await tell(sim, story, safe_tap(sim))).count

    return range(1, run_virtually(count()) + 1, 2)


def _listed(sim: Simulation, cluster: str) -> list[str]:
    entries = sim.model_config.find_entries(SERVER, ClusterId(cluster))
    return [str(entry.name) for entry in entries or ()]
