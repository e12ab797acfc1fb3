"""Running stories on loops of their own, in virtual time."""

from collections.abc import Coroutine
from difflib import unified_diff
from pprint import pformat
from typing import Any, TypeVar

import looptime

from maserve.testing.invariants import check
from maserve.testing.simulation import Simulation
from maserve.testing.stories import Story, tell
from maserve.testing.taps import Fault, Tap

T = TypeVar("T")


def run_virtually(story: Coroutine[Any, Any, T]) -> T:
    """Run on a new loop in virtual time.

    When nothing is ready to run, time moves on at once: there are no threads and no sockets that
    could make anything ready.
    """
    loop = looptime.new_event_loop(noop_cycles=0)
    try:
        return loop.run_until_complete(story)
    finally:
        loop.close()


async def told(*stories: Story) -> Simulation:
    """Return a simulation in which the stories have been told without faults."""
    sim = Simulation()
    for story in stories:
        await tell(sim, story, safe_tap(sim))
    return sim


def safe_tap(
    sim: Simulation,
    *,
    fault: Fault = Fault.NONE,
    at: int = 0,
    error: Exception | None = None,
) -> Tap:
    """Return a tap that checks every safety rule after every write."""
    return Tap(lambda when: check(sim, when), fault=fault, at=at, error=error)


def differences(one: dict[str, object], other: dict[str, object]) -> list[str]:
    """Return the lines of two pictures that differ, for a person to read."""
    first, second = (pformat(picture, width=160).splitlines() for picture in (one, other))
    diff = unified_diff(first, second, n=0, lineterm="")
    return [line for line in diff if line[:1] in "+-"][2:]
