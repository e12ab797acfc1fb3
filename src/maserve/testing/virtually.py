"""Running stories on loops of their own, in virtual time."""

from collections.abc import Coroutine
from difflib import unified_diff
from pprint import pformat
from typing import Any, TypeVar

import looptime

from maserve.testing.invariants import check
from maserve.testing.simulation import Moment, Simulation
from maserve.testing.stories import Story, picture, tell
from maserve.testing.taps import Fault, Tap

T = TypeVar("T")

_TOLD: dict[tuple[Story, ...], Moment] = {}
"""How stories told without faults end: always the same, so they are told once a process."""


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
    if not stories:
        return Simulation()
    if stories not in _TOLD:
        sim = await told(*stories[:-1])
        await tell(sim, stories[-1], safe_tap(sim))
        _TOLD[stories] = sim.moment()
    return await _TOLD[stories].relive()


async def crashes(earlier: tuple[Story, ...], story: Story, fault: Fault) -> tuple[Moment, ...]:
    """Tell a story; return, for each write of it, the world that a crash there leaves.

    `fault` says whether before or after the write. `end_after` goes on from there.
    """
    sim = await told(*earlier)
    moments: list[Moment] = []

    def witness(moment: Fault) -> None:
        if moment is fault:
            moments.append(sim.moment())

    await tell(sim, story, Tap(safe_tap(sim).check, witness=witness))
    return tuple(moments)


async def end_after(crash: Moment, story: Story) -> dict[str, object]:
    """Tell the story to a new control plane after a crash; return how the world looks then."""
    sim = await crash.relive()
    await tell(sim, story, safe_tap(sim))
    return picture(sim)


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
