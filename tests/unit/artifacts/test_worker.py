import asyncio
from threading import Event

from maserve.artifacts import Cancel, CancelableWorker


async def test_work_that_was_cancelled_twice_is_waited_for() -> None:
    began, may_end = asyncio.Event(), Event()
    loop = asyncio.get_running_loop()
    ended: list[bool] = []

    def work(_: Cancel) -> None:
        loop.call_soon_threadsafe(began.set)
        may_end.wait(timeout=5)
        ended.append(True)

    async with CancelableWorker("test") as worker, asyncio.TaskGroup() as group:
        task = group.create_task(worker.run(work))
        await began.wait()
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.sleep(0)
        assert not task.done()
        may_end.set()
        await asyncio.wait([task])
        assert ended
    assert task.cancelled()


async def test_work_that_fails_after_it_was_cancelled_is_just_cancelled() -> None:
    began, may_end = asyncio.Event(), Event()
    loop = asyncio.get_running_loop()

    def work(cancel: Cancel) -> None:
        loop.call_soon_threadsafe(began.set)
        may_end.wait(timeout=5)
        cancel.check()

    async with CancelableWorker("test") as worker, asyncio.TaskGroup() as group:
        task = group.create_task(worker.run(work))
        await began.wait()
        task.cancel()
        await asyncio.sleep(0)
        may_end.set()
    assert task.cancelled()
