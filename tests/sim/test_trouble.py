"""Errors of ports, killed replicas and users who change their minds, at every write."""

import functools
from collections.abc import Awaitable, Callable

import pytest

from maserve.base.errors import Conflict, Error, Unavailable
from maserve.base.keys import ClusterId
from maserve.cli.goals import parse_goal
from maserve.cli.reach import dead_end, is_met
from maserve.resource import get_kind
from maserve.testing.invariants import Violation, check, routed_but_not_loaded
from maserve.testing.simulation import Simulation
from maserve.testing.stories import (
    DEPLOYMENT,
    SERVER,
    Story,
    failing_rollout,
    first_rollout,
    late_failing_rollout,
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

pytestmark = [pytest.mark.slow, pytest.mark.timeout(90)]  # a rollout for every write of one

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
        sim = run_virtually(_meanwhile(at, back, _until_the_wait_for_m1_ends))
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


def test_losing_all_that_was_remembered_at_any_write_loses_no_model() -> None:
    for at in _every_write(late_failing_rollout):
        sim = run_virtually(_forgetful(at))
        (deployment,) = sim.deployments()
        assert deployment.status.current_revision.name == "m1", at
        for cluster in ("c1", "c2"):
            entries = sim.model_config.find_entries(SERVER, ClusterId(cluster)) or ()
            assert [entry.name for entry in entries] == ["m1"], at


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


async def _forgetful(at: int) -> Simulation:
    """Have annotations and status of the Deployment lost right after write `at`.

    Until they are found again nothing tells what is to be served, so only routes are judged.
    """
    sim = await told(first_rollout)

    def check(when: str) -> None:
        if wrong := routed_but_not_loaded(sim):
            raise Violation(f"after {when}: {'; '.join(wrong)}")

    async def story(each: Simulation) -> None:
        await late_failing_rollout(each)
        await _settle(each)

    await tell(sim, story, Tap(check, at=at, meanwhile=lambda: _forget(sim)))
    return sim


async def _forget(sim: Simulation) -> None:
    while True:
        deployment = await sim.store.get(v2.Deployment, DEPLOYMENT)
        deployment.metadata.annotations.clear()
        try:
            deployment = await sim.store.update(deployment)
            deployment.status.Clear()
            await sim.store.update_status(deployment)
        except Conflict:
            continue
        return


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
def _every_write(story: Story = second_rollout) -> range:
    """Return the numbers of the writes that the undisturbed story makes."""

    async def count() -> int:
        sim = await told(first_rollout)
        return (await tell(sim, story, safe_tap(sim))).count

    return range(1, run_virtually(count()) + 1)


async def _until_the_wait_for_m1_ends(sim: Simulation) -> None:
    """Return when `maserve wait --for=stage=ROLLOUT_COMPLETE` would, which must not give up."""
    goal = parse_goal("stage=ROLLOUT_COMPLETE", get_kind("deployment"))

    def is_over(deployment: v2.Deployment | None) -> bool:
        if deployment is None or deployment.spec.desired_revision.name != "m1":
            return False
        assert dead_end(goal, deployment) == ""
        return is_met(goal, deployment)

    await sim.until(v2.Deployment, DEPLOYMENT, is_over)


async def _settle(sim: Simulation) -> None:
    await sim.clock.sleep(120)
