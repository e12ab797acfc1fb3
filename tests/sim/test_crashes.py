"""A crash before and after every write ends as if nothing had happened; no moment is unsafe."""

import pytest

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
from maserve.testing.virtually import differences, run_virtually, safe_tap, told

pytestmark = pytest.mark.timeout(180)  # hundreds of runs of a whole rollout, each in virtual time

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
    undisturbed, writes = run_virtually(_history(name, Fault.NONE, 0))
    ends = {at: run_virtually(_history(name, fault, at))[0] for at in range(1, writes + 1)}
    assert writes >= 10
    assert {
        at: differences(undisturbed, end) for at, end in ends.items() if end != undisturbed
    } == {}


@pytest.mark.parametrize("name", ["second rollout", "rollback"])
def test_at_rest_nothing_is_written_for_an_hour(name: str) -> None:
    assert run_virtually(_rest(name)) == 0


async def _history(name: str, fault: Fault, at: int) -> tuple[dict[str, object], int]:
    """Tell the story with one fault; return how the world looks then, and the number of writes."""
    earlier, story = STORIES[name]
    sim = await told(*earlier)
    tap = await tell(sim, story, safe_tap(sim, fault=fault, at=at))
    return picture(sim), tap.count


async def _rest(name: str) -> int:
    """Return the number of writes in the hour after the story."""
    earlier, story = STORIES[name]
    sim = await told(*earlier, story)
    tap = await tell(sim, lambda each: each.clock.sleep(3600), safe_tap(sim))
    return tap.count
