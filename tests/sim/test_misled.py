"""Lost announcements, a data plane that falls behind, two control planes that both lead."""

import pytest

from maserve.base.keys import Key
from maserve.cmd.parts import ServerChanged
from maserve.testing.simulation import Simulation
from maserve.testing.stories import (
    Story,
    deletion,
    failing_rollout,
    first_rollout,
    picture,
    second_rollout,
    tell,
    until_live,
    want,
)
from maserve.testing.virtually import differences, run_virtually, safe_tap, told


class DeafServerChanged(ServerChanged):
    """Announces nothing: every announcement is lost."""

    def announce(self, value: Key) -> None:
        """Lose it."""


@pytest.mark.parametrize("story", [second_rollout, failing_rollout])
def test_lost_announcements_only_cost_time(story: Story) -> None:
    async def history(changed: ServerChanged) -> tuple[dict[str, object], float]:
        sim = Simulation(changed=changed)
        for each in (first_rollout, story):
            await tell(sim, each, safe_tap(sim))
        return picture(sim), sim.clock.monotonic()

    heard, heard_s = run_virtually(history(ServerChanged()))
    deaf, deaf_s = run_virtually(history(DeafServerChanged()))
    assert differences(heard, deaf) == []
    assert heard_s < deaf_s


@pytest.mark.parametrize("story", [second_rollout, failing_rollout, deletion])
def test_two_control_planes_at_once_do_no_harm(story: Story) -> None:
    async def history(planes: int) -> dict[str, object]:
        sim = await told(first_rollout)
        await sim.run(safe_tap(sim), lambda: story(sim), planes=planes)
        return picture(sim)

    alone, together = run_virtually(history(1)), run_virtually(history(2))
    assert differences(alone, together) == []


def test_a_switch_waits_until_the_data_plane_has_caught_up() -> None:
    async def history() -> list[str]:
        sim = await told(first_rollout)
        tap = safe_tap(sim)
        sim.routes.hold()

        async def story() -> None:
            await want(sim, "m2")
            await sim.clock.sleep(60)
            (deployment,) = sim.deployments()
            unmet = [c.reason for c in deployment.status.conditions if c.status != 1]
            sim.routes.acknowledge()
            await until_live(sim, "m2")
            reasons.append(unmet[0])

        reasons: list[str] = []
        await sim.run(tap, story)
        return reasons

    assert run_virtually(history()) == ["TrafficRouteNotReady"]
