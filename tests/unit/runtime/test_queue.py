"""The queue with a loop and a clock."""

import asyncio

import pytest

from maserve.base.backoff import Backoff
from maserve.runtime import WorkQueue
from maserve.testing.clock import LoopClock

pytestmark = pytest.mark.looptime


def a_queue() -> WorkQueue[str]:
    return WorkQueue(LoopClock(), backoff=Backoff(initial_s=1, limit_s=30))


async def test_a_waiting_worker_gets_the_key_that_is_added() -> None:
    queue = a_queue()
    async with asyncio.TaskGroup() as group:
        got = group.create_task(queue.get())
        await asyncio.sleep(0)
        queue.add("a")
    assert got.result() == "a"


async def test_each_key_goes_to_one_of_two_waiting_workers() -> None:
    queue = a_queue()
    async with asyncio.TaskGroup() as group:
        workers = [group.create_task(queue.get()) for _ in range(2)]
        await asyncio.sleep(0)
        queue.add("a")
        await asyncio.sleep(1)
        queue.add("b")
    assert sorted(str(worker.result()) for worker in workers) == ["a", "b"]


async def test_an_add_during_work_hands_the_key_out_again_once_done() -> None:
    queue = a_queue()
    queue.add("a")
    assert await queue.get() == "a"
    queue.add("a")
    assert queue.depth == 0
    queue.done("a")
    assert queue.depth == 1
    assert queue.working == 0


async def test_a_delayed_key_comes_at_its_time_and_the_earliest_wins() -> None:
    queue = a_queue()
    loop = asyncio.get_running_loop()
    async with asyncio.TaskGroup() as group:
        pump = group.create_task(queue.run())
        queue.add_after("late", 50)
        await asyncio.sleep(1)
        queue.add_after("late", 9)
        queue.add_after("late", 70)
        assert await queue.get() == "late"
        assert loop.time() == pytest.approx(10, abs=0.01)
        assert queue.delayed == 0
        pump.cancel()


async def test_a_delay_of_nothing_is_an_add() -> None:
    queue = a_queue()
    queue.add_after("a", 0)
    assert await queue.get() == "a"


async def test_failures_wait_longer_and_longer_until_forgotten() -> None:
    queue = a_queue()
    delays = [queue.add_rate_limited("a") for _ in range(7)]
    assert delays == [1, 2, 4, 8, 16, 30, 30]
    assert queue.failures("a") == 7
    assert queue.stats.retries == 7
    queue.forget("a")
    assert queue.failures("a") == 0
    assert queue.add_rate_limited("a") == 1


async def test_shut_down_hands_out_what_is_ready_and_then_ends_everybody() -> None:
    queue = a_queue()
    queue.add("ready")
    queue.add_after("later", 5)
    async with asyncio.TaskGroup() as group:
        group.create_task(queue.run())
        await asyncio.sleep(1)
        queue.shut_down()
        queue.add("new")
        assert await queue.get() == "ready"
        assert await queue.get() is None


async def test_shut_down_ends_a_worker_that_waits() -> None:
    queue = a_queue()
    async with asyncio.TaskGroup() as group:
        worker = group.create_task(queue.get())
        group.create_task(queue.run())
        await asyncio.sleep(1)
        queue.shut_down()
    assert worker.result() is None


async def test_a_key_that_is_ready_already_is_not_added_twice_by_its_later_time() -> None:
    queue = a_queue()
    async with asyncio.TaskGroup() as group:
        pump = group.create_task(queue.run())
        queue.add_after("a", 1)
        queue.add("a")
        await asyncio.sleep(2)
        assert queue.depth == 1
        pump.cancel()
