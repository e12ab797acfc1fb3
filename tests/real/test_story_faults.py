"""What goes wrong beside a rollout: minds change, neighbours leave, programs and machines die."""

from pathlib import Path

import pytest

from maserve.base.keys import Key
from maserve.host import DataFolder
from maserve.testing.leftovers import list_shared_memory
from maserve.testing.live import kill_process
from maserve.testing.live_story import (
    NAMESPACE,
    Story,
    a_story,
    is_complete,
    is_rolled_back,
    is_working_on,
)
from maserve.wire import v2

# Control planes and engines start, die and start again.
pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]

ROLLING = "RollingRolloutComplete-c1"
NEIGHBOUR = "neighbour"


async def a_served_model(story: Story) -> None:
    """Have blue served in one cluster; green and broken are there to be asked for."""
    await story.model("blue")
    await story.model("green", load_s=0.5)
    await story.model("broken", load_s=0.5, fails="no weights here")
    await story.server(clusters=("c1",))
    await story.roll("blue")


async def mid_rollout(story: Story, model: str) -> None:
    """Ask for a model and return while every replica loads it."""
    await story.ask(model)
    await story.until(lambda now: is_working_on(now, ROLLING, model))


def kill_programs(story: Story, what: str) -> None:
    """Kill every program of the data plane with that word in its name."""
    for name, pid in story.plane.program_pids().items():
        if what in name:
            kill_process(pid)


def rolled_back_from(now: v2.Deployment, model: str) -> bool:
    return is_rolled_back(now, "blue") and now.status.candidate_revision.name == model


async def test_changes_of_mind_and_leaving_neighbours_cost_no_request(tmp_path: Path) -> None:
    async with a_story(tmp_path) as story:
        await a_served_model(story)
        await story.ask("blue", deployment=NEIGHBOUR)
        await story.until(lambda now: is_complete(now, "blue"), deployment=NEIGHBOUR)
        async with story.load() as load:
            await mid_rollout(story, "green")
            await story.ask("blue")
            await story.until(lambda now: rests_on(now, "blue"))
            await story.only_loaded("blue")

            await story.client.delete(v2.Deployment, Key(NAMESPACE, NEIGHBOUR))
            await story.gone(v2.Deployment, Key(NAMESPACE, NEIGHBOUR))
            await story.roll("green")
            await story.only_loaded("green")
            summary = await load.finish()
        print(f"a change of mind, a neighbour gone: {summary.to_json()}")
        assert (summary.failed, summary.failures) == (0, ())


def rests_on(now: v2.Deployment, model: str) -> bool:
    """Tell whether the model is wanted, current and candidate, and nothing moves."""
    status = now.status
    names = {status.candidate_revision.name, status.current_revision.name}
    at_rest = (v2.DEPLOYMENT_STAGE_ROLLOUT_COMPLETE, v2.DEPLOYMENT_STAGE_ROLLBACK_COMPLETE)
    return names == {model} and status.stage in at_rest


async def test_killed_model_sync_costs_neither_a_request_nor_the_rollout(tmp_path: Path) -> None:
    async with a_story(tmp_path) as story:
        await a_served_model(story)
        async with story.load() as load:
            await mid_rollout(story, "green")
            kill_programs(story, "model-sync")
            await story.until(lambda now: is_complete(now, "green"))
            await story.only_loaded("green")
            summary = await load.finish()
        print(f"every model-sync killed: {summary.to_json()}")
        assert (summary.failed, summary.failures) == (0, ())


async def test_control_plane_killed_in_a_rollback_and_in_a_deletion_ends_both(
    tmp_path: Path,
) -> None:
    async with a_story(tmp_path) as story:
        await a_served_model(story)
        async with story.load() as load:
            await story.ask("broken")
            await story.until(
                lambda now: (
                    now.status.stage == v2.DEPLOYMENT_STAGE_ROLLBACK_IN_PROGRESS
                    or rolled_back_from(now, "broken")
                )
            )
            await story.plane.kill()
            await story.plane.start()
            undone = await story.until(lambda now: rolled_back_from(now, "broken"))
            await story.only_loaded("blue")
            summary = await load.finish()
        assert "no weights here" in undone.status.message
        assert (summary.failed, summary.failures) == (0, ())

        await story.client.delete(v2.Deployment, Key(NAMESPACE, "shop"))
        await story.plane.kill()
        await story.plane.start()
        await story.gone(v2.Deployment, Key(NAMESPACE, "shop"))
        await story.only_loaded()


@pytest.mark.parametrize("everything_dies", [False, True], ids=["stopped", "machine lost"])
async def test_rollout_comes_to_rest_after_a_cold_start(
    tmp_path: Path, everything_dies: bool
) -> None:
    """No replica has the current model then, so that the gate may fail: either end is a good one.

    What was current or what was asked for is served, and the next rollout is like any other.
    """
    async with a_story(tmp_path) as story:
        await a_served_model(story)
        await story.model("red")
        await mid_rollout(story, "green")
        regions = list_shared_memory(DataFolder(story.plane.data))
        assert regions
        await ENDS[everything_dies](story)
        assert story.plane.leftovers() == ()
        await story.plane.start()
        rested = await story.until(
            lambda now: is_complete(now, "green") or rolled_back_from(now, "green")
        )
        await story.only_loaded(rested.status.current_revision.name)
        assert [region for region in regions if region.exists()] == []
        async with story.load() as load:
            await story.roll("red")
            summary = await load.finish()
        assert (summary.failed, summary.failures) == (0, ())
        assert set(summary.answered_by) == {rested.status.current_revision.name, "red"}


async def stopped(story: Story) -> None:
    assert await story.plane.stop() == 0


async def lost(story: Story) -> None:
    """End everything at once, as a machine does that loses its power."""
    await story.plane.kill()
    story.plane.kill_leftovers()


ENDS = {False: stopped, True: lost}
