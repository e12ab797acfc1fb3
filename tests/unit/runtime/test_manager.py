"""The manager: what starts after what, and what stops before what, in virtual time."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from maserve.base.errors import Unavailable
from maserve.runtime import AlwaysLeader, Leadership, Manager, ManagerSettings

pytestmark = pytest.mark.looptime


class Diary:
    """What happened, in order."""

    def __init__(self) -> None:
        self.lines: list[str] = []


class NotedPart:
    """A part that writes its life into a diary; `fails_s` after its start it raises."""

    def __init__(
        self, name: str, diary: Diary, *, syncs_s: float = 0.0, fails_s: float | None = None
    ) -> None:
        self._name = name
        self._diary = diary
        self._syncs_s = syncs_s
        self._fails_s = fails_s
        self.work = asyncio.Event()

    async def run(self) -> None:
        self._diary.lines.append(f"{self._name} starts")
        try:
            await self._live()
        finally:
            self._diary.lines.append(f"{self._name} ends")

    async def _live(self) -> None:
        if self._fails_s is None:
            await self.work.wait()
            await asyncio.sleep(1)
        else:
            await asyncio.sleep(self._fails_s)
            raise RuntimeError(self._name)

    async def wait_synced(self) -> None:
        await asyncio.sleep(self._syncs_s)
        self._diary.lines.append(f"{self._name} synced")

    def stop(self) -> None:
        self._diary.lines.append(f"{self._name} stops")
        self.work.set()


class DeafPart(NotedPart):
    """A worker that does not hear that it should stop."""

    def stop(self) -> None:
        self._diary.lines.append(f"{self._name} hears nothing")


class ElectedLater:
    """Leads from `after_s` until `for_s` later."""

    def __init__(self, after_s: float, for_s: float) -> None:
        self._after_s = after_s
        self._for_s = for_s

    async def run(self, lead: Callable[[], Awaitable[None]]) -> None:
        await asyncio.sleep(self._after_s)
        try:
            async with asyncio.timeout(self._for_s):
                await lead()
        except TimeoutError:
            return


class Bench:
    def __init__(
        self,
        *,
        leadership: Leadership | None = None,
        worker: type[NotedPart] = NotedPart,
        syncs_s: float = 0.0,
        fails_s: float | None = None,
    ) -> None:
        self.diary = Diary()
        self.manager = Manager(
            clients=[NotedPart("client", self.diary)],
            sources=[NotedPart("source", self.diary, syncs_s=syncs_s)],
            workers=[worker("worker", self.diary, fails_s=fails_s)],
            leadership=leadership or AlwaysLeader(),
            settings=ManagerSettings(sync_s=60, stop_s=10),
        )


async def test_sources_are_synced_before_workers_start_and_end_before_them() -> None:
    bench = Bench()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(bench.manager.run())
        await bench.manager.wait_leading()
        await asyncio.sleep(1)
        assert bench.manager.is_ready
        task.cancel()
    assert bench.diary.lines == [
        "client starts",
        "source starts",
        "source synced",
        "worker starts",
        "source ends",
        "worker stops",
        "worker ends",
        "client ends",
    ]
    assert not bench.manager.is_ready


async def test_a_worker_that_does_not_finish_in_time_is_cancelled() -> None:
    bench = Bench(worker=DeafPart)
    loop = asyncio.get_running_loop()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(bench.manager.run())
        await asyncio.sleep(1)
        task.cancel()
    assert bench.diary.lines[-3:] == ["worker hears nothing", "worker ends", "client ends"]
    assert loop.time() == pytest.approx(11, abs=0.01)


async def test_a_world_that_cannot_be_read_ends_the_start() -> None:
    bench = Bench(syncs_s=100)
    with pytest.raises(ExceptionGroup) as raised:
        await bench.manager.run()
    assert raised.group_contains(Unavailable, match="could not be read within 60s")
    assert bench.diary.lines[-2:] == ["source ends", "client ends"]


async def test_a_part_that_raises_ends_everything() -> None:
    bench = Bench(fails_s=5)
    with pytest.raises(ExceptionGroup) as raised:
        await bench.manager.run()
    assert raised.group_contains(RuntimeError, match="worker")
    assert bench.diary.lines[-1] == "client ends"


async def test_a_standby_is_ready_but_runs_no_workers() -> None:
    bench = Bench(leadership=ElectedLater(100, 10))
    async with asyncio.TaskGroup() as group:
        task = group.create_task(bench.manager.run())
        await asyncio.sleep(50)
        assert bench.manager.is_ready
        assert "worker starts" not in bench.diary.lines
        task.cancel()


async def test_losing_the_leadership_ends_the_run() -> None:
    bench = Bench(leadership=ElectedLater(0, 10))
    await bench.manager.run()
    assert bench.diary.lines[-4:] == ["source ends", "worker stops", "worker ends", "client ends"]


async def test_a_manager_of_nothing_just_runs() -> None:
    manager = Manager(leadership=ElectedLater(0, 1), settings=ManagerSettings())
    await manager.run()
    assert not manager.is_ready
