"""The event recorder against a log that remembers."""

import asyncio

import pytest

from maserve.base.errors import Unavailable
from maserve.base.keys import Key
from maserve.runtime import EventSettings, LoggingRecorder
from maserve.store.events import EventRow
from maserve.testing.clock import FakeClock
from maserve.wire import meta, v2


class RememberingLog:
    """Keeps (type, reason, message) of each event; fails first as often as told."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, str, str]] = []
        self.about: list[tuple[str, Key, str, str]] = []
        self.failures = 0

    async def record(
        self,
        kind: str,
        key: Key,
        *,
        uid: str,
        type: str,  # noqa: A002 - the port's word
        reason: str,
        message: str,
        source: str,
    ) -> None:
        if self.failures:
            self.failures -= 1
            raise Unavailable("log is closed")
        self.rows.append((type, reason, message))
        self.about.append((kind, key, uid, source))

    async def list(self, kind: str, key: Key) -> tuple[EventRow, ...]:
        return ()


class Bench:
    def __init__(self, settings: EventSettings | None = None) -> None:
        self.log = RememberingLog()
        self.clock = FakeClock()
        self.recorder = LoggingRecorder(
            self.log, source="test", clock=self.clock, settings=settings or EventSettings()
        )

    @property
    def messages(self) -> list[str]:
        return [message for _, _, message in self.log.rows]


def a_server(uid: str = "u1") -> v2.InferenceServer:
    return v2.InferenceServer(metadata=meta.ObjectMeta(name="is1", namespace="ns", uid=uid))


async def test_an_event_says_what_about_whom_and_who_says_so() -> None:
    bench = Bench()
    bench.recorder.normal(a_server(), "CreationCompleted", "all serve")
    bench.recorder.warning(a_server(), "CreationFailed", "none serve")
    await bench.recorder.flush()
    assert bench.log.rows == [
        ("Normal", "CreationCompleted", "all serve"),
        ("Warning", "CreationFailed", "none serve"),
    ]
    assert bench.log.about[0] == ("InferenceServer", Key("ns", "is1"), "u1", "test")


async def test_a_repeated_event_is_written_again_only_after_a_while() -> None:
    bench = Bench()
    bench.recorder.normal(a_server(), "Moved", "once")
    bench.recorder.normal(a_server(), "Moved", "once")
    bench.clock.advance(9.9)
    bench.recorder.normal(a_server(), "Moved", "once")
    await bench.recorder.flush()
    assert bench.messages == ["once"]
    bench.clock.advance(0.2)
    bench.recorder.normal(a_server(), "Moved", "once")
    await bench.recorder.flush()
    assert bench.messages == ["once", "once"]


async def test_what_happens_again_after_something_else_is_no_repetition() -> None:
    bench = Bench()
    for message in ("A to B", "B to A", "A to B"):
        bench.recorder.normal(a_server(), "StageChange", message)
    bench.recorder.normal(a_server("u2"), "StageChange", "A to B")
    await bench.recorder.flush()
    assert bench.messages == ["A to B", "B to A", "A to B", "A to B"]


async def test_one_object_may_not_flood_the_log_and_leaves_room_for_others() -> None:
    bench = Bench(EventSettings(burst=2, refill_s=10))
    record = bench.recorder.normal
    for number in range(5):
        record(a_server(), "Moved", str(number))
    record(a_server("u2"), "Moved", "other")
    bench.clock.advance(10)
    record(a_server(), "Moved", "later")
    await bench.recorder.flush()
    assert bench.messages == ["0", "1", "other", "later"]


async def test_memory_is_bounded() -> None:
    bench = Bench(EventSettings(remembered=1, pending=2))
    bench.recorder.normal(a_server(), "Moved", "a")
    bench.recorder.normal(a_server("u2"), "Moved", "b")
    bench.recorder.normal(a_server(), "Moved", "lost: nothing waits any more")
    await bench.recorder.flush()
    bench.recorder.normal(a_server(), "Moved", "a")
    await bench.recorder.flush()
    assert bench.messages == ["a", "b", "a"]


async def test_a_log_that_fails_costs_the_event_and_nothing_else() -> None:
    bench = Bench()
    bench.log.failures = 1
    bench.recorder.normal(a_server(), "Moved", "lost")
    bench.recorder.normal(a_server(), "Moved", "kept")
    await bench.recorder.flush()
    assert bench.messages == ["kept"]


@pytest.mark.looptime
async def test_it_writes_while_it_runs_and_what_is_left_when_it_ends() -> None:
    bench = Bench()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(bench.recorder.run())
        bench.recorder.normal(a_server(), "Moved", "early")
        await asyncio.sleep(1)
        assert bench.messages == ["early"]
        bench.recorder.normal(a_server(), "Moved", "late")
        task.cancel()
    assert bench.messages == ["early", "late"]


class StuckLog(RememberingLog):
    """Never ends the first write."""

    def __init__(self) -> None:
        super().__init__()
        self.began = asyncio.Event()

    async def record(self, kind: str, key: Key, **event: str) -> None:
        if not self.began.is_set():
            self.began.set()
            await asyncio.Event().wait()
        await super().record(kind, key, **event)


async def test_a_write_that_is_cut_off_costs_no_other_event() -> None:
    bench = Bench()
    log = StuckLog()
    recorder = LoggingRecorder(log, source="test", clock=bench.clock, settings=EventSettings())
    async with asyncio.TaskGroup() as group:
        running = group.create_task(recorder.run())
        for number in range(3):
            recorder.normal(a_server(), "Changed", f"step {number}")
        await log.began.wait()
        running.cancel()
    assert [message for _, _, message in log.rows] == ["step 1", "step 2"]
