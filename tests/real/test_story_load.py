"""A rollout under open-loop load loses no request; without its safety steps it does.

Half of the requests open a connection of their own, half reuse kept-alive ones.
"""

from collections.abc import Mapping
from pathlib import Path

import pytest

from maserve.testing.live_story import Story, a_story, fast_settings
from maserve.testing.load_results import LoadSummary

# A control plane, four engines, four rollouts.
pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]

CARELESS = ("-m", "maserve.testing.careless_up")


async def rolled_back_and_forth(story: Story) -> LoadSummary:
    """Roll v1 to v2 and at once back, and to v2 again after v2 was unloaded, under load.

    A load takes long enough for a switch that does not wait for it to be noticed.
    """
    await story.model("v1", load_s=0.5)
    await story.model("v2", load_s=0.5)
    await story.server()
    await story.roll("v1")
    async with story.load() as load:
        await story.roll("v2")
        await story.roll("v1")
        await story.only_loaded("v1")
        await story.roll("v2")
        await story.only_loaded("v2")
        return await load.finish()


def careless_settings() -> Mapping[str, object]:
    """Return settings that leave nothing to the data plane's good will."""
    return {**fast_settings(), "modelSync": {"unloadGrace": "0s"}}


async def test_rollouts_under_load_lose_no_request(tmp_path: Path) -> None:
    async with a_story(tmp_path) as story:
        summary = await rolled_back_and_forth(story)
    print(f"three rollouts under load: {summary.to_json()}")
    assert (summary.failed, summary.wrong, summary.failures) == (0, 0, ())
    assert set(summary.answered_by) == {"v1", "v2"}
    assert summary.sent == summary.ok > 0
    assert summary.sent > 100 * summary.duration_s
    assert 0.4 < summary.new_connections / summary.sent < 0.6


async def test_same_rollouts_without_verification_and_drain_lose_requests(
    tmp_path: Path,
) -> None:
    """The negative control: that the load above could have failed."""
    async with a_story(tmp_path, settings=careless_settings(), program=CARELESS) as story:
        summary = await rolled_back_and_forth(story)
    print(f"three careless rollouts under load: {summary.to_json()}")
    assert summary.failed > 0
