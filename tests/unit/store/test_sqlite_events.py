from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from maserve.base.keys import Key
from maserve.store import EventLog, EventRow
from maserve.store.sqlite import SqliteStore, StoreSettings
from maserve.testing.clock import FakeClock

KEY = Key("prod", "d")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def log(tmp_path: Path, clock: FakeClock) -> AsyncIterator[EventLog]:
    settings = StoreSettings(events_per_object=3, events_per_namespace=5)
    async with SqliteStore(tmp_path / "store.db", clock=clock, settings=settings) as store:
        yield store.events


async def say(log: EventLog, message: str, *, key: Key = KEY, uid: str = "u1") -> None:
    await log.record(
        "Deployment",
        key,
        uid=uid,
        type="Normal",
        reason="StageChange",
        message=message,
        source="deployment",
    )


def messages(rows: tuple[EventRow, ...]) -> list[str]:
    return [row.message for row in rows]


async def test_events_are_listed_newest_last(log: EventLog, clock: FakeClock) -> None:
    await say(log, "a")
    clock.advance(1)
    await say(log, "b")
    assert messages(await log.list("Deployment", KEY)) == ["a", "b"]
    assert await log.list("Model", KEY) == ()


async def test_equal_events_are_counted(log: EventLog, clock: FakeClock) -> None:
    start = clock.now()
    await say(log, "a")
    await say(log, "b")
    clock.advance(60)
    await say(log, "a")
    other, counted = await log.list("Deployment", KEY)
    assert other.message == "b"
    assert (counted.count, counted.first_time) == (2, start)
    assert counted.last_time == clock.now()


async def test_another_uid_is_another_event(log: EventLog) -> None:
    await say(log, "a")
    await say(log, "a", uid="u2")
    assert [row.uid for row in await log.list("Deployment", KEY)] == ["u1", "u2"]


async def test_an_object_keeps_its_newest_events(log: EventLog, clock: FakeClock) -> None:
    for message in "abcd":
        await say(log, message)
        clock.advance(1)
    assert messages(await log.list("Deployment", KEY)) == ["b", "c", "d"]


async def test_a_namespace_keeps_its_newest_events(log: EventLog, clock: FakeClock) -> None:
    for number in range(6):
        await say(log, f"{number}", key=Key("prod", f"d{number}"))
        clock.advance(1)
    await say(log, "x", key=Key("other", "d"))
    assert await log.list("Deployment", Key("prod", "d0")) == ()
    assert messages(await log.list("Deployment", Key("prod", "d1"))) == ["1"]
