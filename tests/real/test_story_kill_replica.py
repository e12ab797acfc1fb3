"""A replica killed under load costs no request and starts no rollout, whatever phase it is in."""

from pathlib import Path

import pytest

from maserve.resource.annotations import ROLLOUT_COUNT
from maserve.testing.live import kill_process
from maserve.testing.live_story import (
    DEPLOYMENT,
    Story,
    a_story,
    fast_settings,
    is_complete,
    is_working_on,
)
from maserve.wire import v2

# Five rollouts with a soak, each with a replica that has to come back.
pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

PHASES = (
    ("v2", "CanaryRolloutComplete-c1", "triton-server-c1-0"),
    ("v1", "RollingRolloutComplete-c1", "triton-server-c1-1"),
    ("v2", "TrafficRoutingConfigured-c1", "triton-server-c1-0"),
    ("v1", "SoakComplete-c1", "triton-server-c1-1"),
)
"""What is rolled to, the step under way, the replica that dies in it. The first is the canary."""


def rollouts(deployment: v2.Deployment) -> int:
    return int(deployment.metadata.annotations[ROLLOUT_COUNT])


def kill(story: Story, replica: str) -> int:
    """Kill the engine of a replica and return its pid."""
    pids = story.plane.data_plane_pids()
    pid = next(pid for name, pid in pids.items() if f"/{replica}/" in name)
    kill_process(pid)
    return pid


async def killed_in(story: Story, model: str, step: str, replica: str) -> v2.Deployment:
    """Roll, kill the replica while that step is under way, and wait for the end."""
    before = await story.client.get(v2.Deployment, DEPLOYMENT)
    await story.ask(model)
    at = await story.until(lambda now: is_working_on(now, step, model))
    pid = kill(story, replica)
    reason = next(c.reason for c in at.status.conditions if c.type == step)
    print(f"killed {replica} ({pid}) in {step}: {reason}")
    end = await story.until(lambda now: is_complete(now, model))
    assert rollouts(end) == rollouts(before) + 1
    await story.only_loaded(model)
    return end


async def test_replica_killed_in_every_phase_costs_no_request(tmp_path: Path) -> None:
    async with a_story(tmp_path, settings=fast_settings(soak="1500ms")) as story:
        await story.model("v1", load_s=0.3)
        await story.model("v2", load_s=0.3)
        await story.server()
        await story.roll("v1")
        async with story.load() as load:
            for model, step, replica in PHASES:
                await killed_in(story, model, step, replica)
            rested = await story.client.get(v2.Deployment, DEPLOYMENT)
            killed = kill(story, "triton-server-c2-0")
            await story.serves_again(killed)
            summary = await load.finish()
        print(f"a replica killed in every phase: {summary.to_json()}")
        assert (summary.failed, summary.failures) == (0, ())
        after = await story.until(lambda now: is_complete(now, "v1"))
        assert rollouts(after) == rollouts(rested)
        assert await story.plane.stop() == 0
        assert story.plane.leftovers() == ()


async def test_only_replica_of_a_cluster_killed_costs_no_request(tmp_path: Path) -> None:
    """The gateway goes to the other cluster meanwhile."""
    async with a_story(tmp_path) as story:
        await story.model("v1", load_s=0.3)
        await story.server(replicas=1)
        await story.roll("v1")
        async with story.load() as load:
            await story.serves_again(kill(story, "triton-server-c1-0"))
            await story.serves_again(kill(story, "triton-server-c2-0"))
            await story.only_loaded("v1")
            summary = await load.finish()
        print(f"the only replica of each cluster killed: {summary.to_json()}")
        assert (summary.failed, summary.failures) == (0, ())
