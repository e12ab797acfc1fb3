"""Deleting in any phase leaves nothing: no entry, route, loaded model, process or file."""

from pathlib import Path

import pytest

from maserve.testing.live_story import (
    DEPLOYMENT,
    SERVER,
    Met,
    Story,
    a_story,
    fast_settings,
    is_complete,
    is_working_on,
)
from maserve.wire import v2

# A deployment is made and deleted in each of many phases.
pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

BEGINNINGS = (
    "CanaryRolloutComplete-c1",
    "RollingRolloutComplete-c1",
    "TrafficRoutingConfigured-c1",
    "SoakComplete-c1",
    "RollingRolloutComplete-c2",
    "SoakComplete-c2",
)
"""The steps of a first rollout in which it is deleted."""


def working_on(step: str, model: str) -> Met:
    return lambda now: is_working_on(now, step, model)


def rolling_back(now: v2.Deployment) -> bool:
    return now.status.stage in (
        v2.DEPLOYMENT_STAGE_ROLLBACK_IN_PROGRESS,
        v2.DEPLOYMENT_STAGE_ROLLOUT_FAILED,
        v2.DEPLOYMENT_STAGE_ROLLBACK_COMPLETE,
    )


async def expect_nothing_placed(story: Story) -> None:
    """Expect a server on which no Deployment has ever been, as far as anybody can see."""
    await story.only_loaded()
    view = await story.server_view()
    assert [entry.name for cluster in view.clusters for entry in cluster.entries] == []
    paths = [route.match_path for route in view.routes]
    assert [path for path in paths if path.endswith(f"/{DEPLOYMENT.name}")] == []


async def deleted_in(story: Story, model: str, met: Met) -> None:
    """Ask for a model, delete the Deployment once it is as said, and expect nothing of it."""
    await story.ask(model)
    await story.until(met)
    await story.delete()
    await expect_nothing_placed(story)


async def test_deployment_deleted_in_every_phase_leaves_nothing(tmp_path: Path) -> None:
    async with a_story(tmp_path, settings=fast_settings(soak="500ms")) as story:
        await story.model("blue", load_s=0.2)
        await story.model("green", load_s=0.2)
        await story.model("broken", fails="no weights here")
        await story.server()
        for step in BEGINNINGS:
            await deleted_in(story, "blue", working_on(step, "blue"))
        await deleted_in(story, "broken", rolling_back)
        await story.roll("blue")
        await deleted_in(story, "green", working_on("TrafficRoutingConfigured-c2", "green"))
        await story.roll("blue")
        await deleted_in(story, "broken", rolling_back)
        await deleted_in(story, "green", lambda now: is_complete(now, "green"))
        await story.delete_server()
        assert (story.plane.replica_files(), story.plane.traffic_rows()) == ((), ())
        assert list(story.plane.program_pids()) == ["envoy"]
        assert await story.plane.stop() == 0
        assert story.plane.leftovers() == ()


async def test_server_deleted_before_it_serves_and_under_a_rollout_leaves_nothing(
    tmp_path: Path,
) -> None:
    async with a_story(tmp_path) as story:
        await story.model("blue", load_s=0.2)
        await story.declare_server()
        await story.delete_server()
        assert (story.plane.replica_files(), story.plane.traffic_rows()) == ((), ())
        assert list(story.plane.program_pids()) == ["envoy"]

        await story.server(clusters=("c1",))
        await story.ask("blue")
        await story.until(working_on("RollingRolloutComplete-c1", "blue"))
        await story.client.delete(v2.InferenceServer, SERVER)
        await story.client.delete(v2.Deployment, DEPLOYMENT)
        await story.gone(v2.Deployment, DEPLOYMENT)
        await story.gone(v2.InferenceServer, SERVER)
        assert (story.plane.replica_files(), story.plane.traffic_rows()) == ((), ())
        assert list(story.plane.program_pids()) == ["envoy"]
        assert await story.plane.stop() == 0
        assert story.plane.leftovers() == ()
