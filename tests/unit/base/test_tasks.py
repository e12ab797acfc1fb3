"""Ending groups of tasks."""

import asyncio

import pytest

from maserve.base.tasks import run_until

pytestmark = pytest.mark.looptime


async def for_ever(diary: list[str]) -> None:
    try:
        await asyncio.Event().wait()
    finally:
        diary.append("ended")


async def test_parts_run_until_the_event() -> None:
    stop, diary = asyncio.Event(), list[str]()
    async with asyncio.TaskGroup() as group:
        group.create_task(run_until(stop, for_ever(diary), asyncio.sleep(1)))
        await asyncio.sleep(5)
        assert diary == []
        stop.set()
    assert diary == ["ended"]


async def test_a_part_that_raises_ends_the_others() -> None:
    async def fail() -> None:
        raise ValueError("broken")

    diary: list[str] = []
    with pytest.raises(ExceptionGroup) as raised:
        await run_until(asyncio.Event(), for_ever(diary), fail())
    assert raised.group_contains(ValueError, match="broken")
    assert diary == ["ended"]


async def test_a_cancellation_in_the_moment_of_the_end_is_not_lost() -> None:
    stop, diary = asyncio.Event(), list[str]()
    task = asyncio.get_running_loop().create_task(run_until(stop, for_ever(diary)))
    await asyncio.sleep(1)
    stop.set()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert diary == ["ended"]
