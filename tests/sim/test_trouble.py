"""Errors of ports, killed replicas and users who change their minds, at every write."""

import functools
from collections.abc import Awaitable, Callable

import pytest

from maserve.base.errors import Conflict, Error, Unavailable
from maserve.base.keys import ClusterId
from maserve.testing.invariants import check
from maserve.testing.simulation import Simulation
from maserve.testing.stories import (
    DEPLOYMENT,
    SERVER,
    failing_rollout,
    first_rollout,
    picture,
    remove,
    second_rollout,
    tell,
    until_live,
    want,
)
from maserve.testing.taps import Fault, Tap
from maserve.testing.virtually import differences, run_virtually, safe_tap, told
from maserve.wire import v2

pytestmark = pytest.mark.timeout(180)  # hundreds of runs of a whole rollout, each in virtual time


Act = Callable[[Simulation], Awaitable[None]]


@pytest.mark.parametrize("fault", [Fault.ERROR_BEFORE, Fault.ERROR_AFTER])
@pytest.mark.parametrize("error", [Unavailable("timed out"), Conflict("object", "ns/d")], ids=str)
def test_an_error_of_any_write_changes_nothing_in_the_end(fault: Fault, error: Error) -> None:
    undisturbed = run_virtually(_with_error(Fault.NONE, 0, error))
    ends = {at: run_virtually(_with_error(fault, at, error)) for at in _every_write()}
    assert {
        at: differences(undisturbed, end) for at, end in ends.items() if end != undisturbed
    } == {}


@pytest.mark.parametrize("cluster", ["c1", "c2"])
def test_a_replica_killed_at_any_write_is_no_new_rollout(cluster: str) -> None:
    async def kill(sim: Simulation) -> None:
        sim.world.kill(SERVER, ClusterId(cluster), 0)

    for at in _every_write():
        sim = run_virtually(_meanwhile(at, kill, second_rollout))
        (deployment,) = sim.deployments()
        assert deployment.status.current_revision.name == "m2", at
        assert deployment.metadata.annotations["deployment.rollout.count"] == "1", at


def test_going_back_to_the_current_model_at_any_write_never_takes_it_away() -> None:
    async def back(sim: Simulation) -> None:
        await want(sim, "m1")

    for at in _every_write():
        sim = run_virtually(_meanwhile(at, back, _settle))
        (deployment,) = sim.deployments()
        assert deployment.status.current_revision.name == "m1", at


def test_wanting_a_third_model_at_any_write_ends_on_it() -> None:
    async def onward(sim: Simulation) -> None:
        await want(sim, "m3")

    for at in _every_write():
        sim = run_virtually(_meanwhile(at, onward, lambda each: until_live(each, "m3")))
        (deployment,) = sim.deployments()
        assert deployment.status.current_revision.name == "m3", at


def test_deleting_at_any_write_leaves_nothing() -> None:
    async def delete(sim: Simulation) -> None:
        await remove(sim, v2.Deployment, DEPLOYMENT)

    for at in _every_write():
        sim = run_virtually(_meanwhile(at, delete, _settle))
        assert sim.deployments() == (), at
        for cluster in ("c1", "c2"):
            assert sim.model_config.find_entries(SERVER, ClusterId(cluster)) == (), at


def test_a_rollback_that_has_begun_is_finished_before_the_next_rollout() -> None:
    sim = run_virtually(told(first_rollout, failing_rollout, second_rollout))
    (deployment,) = sim.deployments()
    assert deployment.status.current_revision.name == "m2"
    assert deployment.metadata.annotations["deployment.rollout.count"] == "2"
    assert "deployment.rollback.reason" not in deployment.metadata.annotations


async def _with_error(fault: Fault, at: int, error: Error) -> dict[str, object]:
    sim = await told(first_rollout)
    await tell(sim, second_rollout, safe_tap(sim, fault=fault, at=at, error=error))
    return picture(sim)


async def _meanwhile(at: int, act: Act, end: Act) -> Simulation:
    """Roll out m2, have `act` done right after write `at`, and return the world after `end`."""
    sim = await told(first_rollout)

    async def story(each: Simulation) -> None:
        await want(each, "m2")
        await end(each)
        await each.clock.sleep(30)

    await tell(sim, story, Tap(lambda when: check(sim, when), at=at, meanwhile=lambda: act(sim)))
    return sim


@functools.cache
def _every_write() -> range:
    """Return the numbers of the writes that an undisturbed second rollout makes."""

    async def count() -> int:
        sim = await told(first_rollout)
        return (await tell(sim, second_rollout, safe_tap(sim))).count

    return range(1, run_virtually(count()) + 1)


async def _settle(sim: Simulation) -> None:
    await sim.clock.sleep(120)
