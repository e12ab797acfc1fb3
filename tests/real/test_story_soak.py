"""The only replica of the first cluster dies in its soak on a first rollout: the second waits."""

from pathlib import Path

import pytest

from maserve.base.clock import SystemClock
from maserve.conditions import find_condition
from maserve.testing.live import kill_process
from maserve.testing.live_story import a_story, fast_settings, is_complete, is_working_on
from maserve.wire import v2

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]

SOAK_S = 3.0
BEGINS = "CanaryRolloutComplete-c2"


def reason_of_soak(deployment: v2.Deployment) -> str:
    found = find_condition(deployment.status.conditions, "SoakComplete-c1")
    return "" if found is None else found.reason


async def test_second_cluster_waits_for_the_soak_of_the_first_to_start_over(tmp_path: Path) -> None:
    async with a_story(tmp_path, settings=fast_settings(soak=f"{SOAK_S:g}s")) as story:
        await story.model("v1", load_s=SOAK_S)
        await story.server(replicas=1)
        await story.ask("v1")
        await story.until(lambda now: reason_of_soak(now) == "Soaking")
        pids = story.plane.data_plane_pids()
        kill_process(next(pid for name, pid in pids.items() if "/triton-server-c1-0/" in name))

        held = await story.until(
            lambda now: (
                reason_of_soak(now) == "HealthGateNotPassing" or is_working_on(now, BEGINS, "v1")
            )
        )
        assert reason_of_soak(held) == "HealthGateNotPassing"
        await story.until(lambda now: reason_of_soak(now) == "Soaking")
        back_s = SystemClock().monotonic()
        await story.until(lambda now: is_working_on(now, BEGINS, "v1"))

        assert SystemClock().monotonic() - back_s > SOAK_S - 0.5
        await story.until(lambda now: is_complete(now, "v1"))
