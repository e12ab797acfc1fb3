"""A crash before and after every write ends as if nothing had happened; no moment is unsafe."""

import pytest

from maserve.testing.simulation import Moment, Simulation
from maserve.testing.stories import (
    Story,
    deletion,
    failing_rollout,
    first_rollout,
    late_failing_rollout,
    picture,
    second_rollout,
    tell,
)
from maserve.testing.taps import Fault
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
]  # half a rollout, on average, for every write of one

STORIES: dict[str, tuple[tuple[Story, ...], Story]] = {
    "first rollout": ((), first_rollout),
    "second rollout": ((first_rollout,), second_rollout),
    "rollback": ((first_rollout,), failing_rollout),
    "rollback of a cluster that had switched": ((first_rollout,), late_failing_rollout),
    "deletion": ((first_rollout,), deletion),
}


@pytest.mark.parametrize("name", STORIES)
@pytest.mark.parametrize("fault", [Fault.CRASH_BEFORE, Fault.CRASH_AFTER])
def test_a_crash_at_any_write_ends_as_an_undisturbed_run(name: str, fault: Fault) -> None:
    earlier, story = STORIES[name]
    undisturbed = picture(run_virtually(told(*earlier, story)))
    crashed = run_virtually(crashes(earlier, story, fault))
    ends = {at: run_virtually(end_after(crash, story)) for at, crash in enumerate(crashed, 1)}
    assert len(ends) >= 10
    assert {
        at: differences(undisturbed, end) for at, end in ends.items() if end != undisturbed
    } == {}


@pytest.mark.parametrize("fault", [Fault.CRASH_BEFORE, Fault.CRASH_AFTER])
def test_a_crash_leaves_what_a_control_plane_leaves_that_is_killed_there(fault: Fault) -> None:
    earlier, story = STORIES["rollback"]
    for at, crash in enumerate(run_virtually(crashes(earlier, story, fault)), 1):
        killed = run_virtually(_killed("rollback", fault, at))
        assert run_virtually(_went_on(crash, story)) == killed, at


@pytest.mark.parametrize("name", ["second rollout", "rollback"])
def test_at_rest_nothing_is_written_for_an_hour(name: str) -> None:
    assert run_virtually(_rest(name)) == 0


async def _killed(name: str, fault: Fault, at: int) -> list[object]:
    """Tell the story; its control plane is killed in the middle of it, at one write."""
    earlier, story = STORIES[name]
    sim = await told(*earlier)
    await tell(sim, story, safe_tap(sim, fault=fault, at=at))
    return _course(sim)


async def _went_on(crash: Moment, story: Story) -> list[object]:
    sim = await crash.relive()
    await tell(sim, story, safe_tap(sim))
    return _course(sim)


def _course(sim: Simulation) -> list[object]:
    """Return what was written from the start on, in order, and how long it all took."""
    stored = [sim.fake_store.peek_all(kind) for kind in (v2.Deployment, v2.InferenceServer)]
    ports = (sim.backend, sim.model_config, sim.routes, sim.publisher)
    return [*stored, *(each.calls for each in ports), sim.recorder.events, sim.clock.monotonic()]


async def _rest(name: str) -> int:
    """Return the number of writes in the hour after the story."""
    earlier, story = STORIES[name]
    sim = await told(*earlier, story)
    tap = await tell(sim, lambda each: each.clock.sleep(3600), safe_tap(sim))
    return tap.count
