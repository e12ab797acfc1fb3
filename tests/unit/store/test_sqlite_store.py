"""What the SQLite store promises beyond the contract: durability, its thread, its bounds."""

import asyncio
import contextlib
import random
import sqlite3
import threading
from collections.abc import Coroutine
from pathlib import Path

import pytest

from maserve.base.errors import Expired, Unavailable
from maserve.base.keys import Key
from maserve.resource import key_of
from maserve.store.sqlite import SqliteStore, StoreSettings
from maserve.testing.store_cases import (
    a_model,
    age,
    described,
    held,
    owned_by,
    take,
    told,
    watching,
)
from maserve.wire import v2

KEY = Key("prod", "m")


async def test_everything_is_there_after_closing_and_opening_again(tmp_path: Path) -> None:
    async with SqliteStore(tmp_path / "store.db") as store:
        await store.create(held(a_model("gone-soon"), "a/b"))
        made = await store.create(a_model())
        await store.delete(v2.Model, Key("prod", "gone-soon"))
    async with SqliteStore(tmp_path / "store.db") as store:
        assert await store.get(v2.Model, KEY) == made
        since = made.metadata.resourceVersion
        async with watching(store, v2.Model, since=since) as changes:
            assert told(await take(changes, 1)) == [("MODIFIED", "gone-soon")]
        later = await store.update(described(made, "new"))
        assert int(later.metadata.resourceVersion) == int(since) + 2


async def test_commits_reach_the_disk_before_they_are_acknowledged(tmp_path: Path) -> None:
    async with SqliteStore(tmp_path / "store.db") as store:
        mode, synchronous = await store._database.read(
            lambda view: (
                view.connection.execute("PRAGMA journal_mode").fetchone()[0],
                view.connection.execute("PRAGMA synchronous").fetchone()[0],
            )
        )
    assert (mode, synchronous) == ("wal", 2)


async def test_sqlite_runs_on_its_own_named_thread(tmp_path: Path) -> None:
    async with SqliteStore(tmp_path / "store.db") as store:
        name = await store._database.read(lambda _: threading.current_thread().name)
        assert name == "sqlite-store.db"
    assert name not in {thread.name for thread in threading.enumerate()}


async def test_uids_come_from_the_given_randomness(tmp_path: Path) -> None:
    made = []
    for number in range(2):
        path = tmp_path / f"{number}.db"
        async with SqliteStore(path, rng=random.Random(7)) as store:
            made.append((await store.create(a_model())).metadata.uid)
    assert made[0] == made[1]
    assert made[0][14] == "4"


async def test_orphans_in_a_file_from_elsewhere_are_collected_on_opening(tmp_path: Path) -> None:
    file = tmp_path / "store.db"
    async with SqliteStore(file) as store:
        top = await store.create(a_model("top"))
        await store.create(owned_by(a_model("child"), top))
    with contextlib.closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("DELETE FROM objects WHERE name = 'top'")
    async with SqliteStore(file) as store:
        assert (await store.list(v2.Model)).items == ()


async def test_history_is_bounded_in_bytes(tmp_path: Path) -> None:
    settings = StoreSettings(history_bytes=100_000)
    async with SqliteStore(tmp_path / "store.db", settings=settings) as store:
        made = await store.create(a_model(text="x" * 10_000))
        model = made
        for step in range(20):
            model = await store.update(described(model, f"{step}" + "x" * 10_000))
        size = await store._database.read(
            lambda view: view.connection.execute(
                "SELECT sum(length(before)) FROM history"
            ).fetchone()[0]
        )
        assert 0 < size <= 100_000
        async with watching(store, v2.Model, since=made.metadata.resourceVersion) as changes:
            with pytest.raises(Expired):
                await anext(changes)


async def test_a_watch_far_behind_reads_on_in_parts(tmp_path: Path) -> None:
    async with SqliteStore(tmp_path / "store.db") as store:
        made = await store.create(a_model())
        await age(store, made, 600)
        async with watching(store, v2.Model, since=made.metadata.resourceVersion) as changes:
            seen = await take(changes, 600)
    texts = [each.object.spec.description for each in seen if each.object is not None]
    assert texts == [f"step {number}" for number in range(600)]


async def test_a_long_initial_list_comes_in_parts_of_one_version(tmp_path: Path) -> None:
    async with SqliteStore(tmp_path / "store.db") as store:
        made = [store.create(a_model(f"m{number:03}")) for number in range(300)]
        await asyncio.gather(*made)
        async with watching(store, v2.Model) as changes:
            first = await take(changes, 10)
            await store.delete(v2.Model, Key("prod", "m299"))
            rest = await take(changes, 292)
    assert told(first + rest)[299:] == [("ADDED", "m299"), ("SYNCED", ""), ("DELETED", "m299")]


async def read_to_the_end(store: SqliteStore, begun: asyncio.Event) -> None:
    async for _ in store.watch(v2.Model):
        begun.set()


async def test_a_waiting_watch_ends_when_the_store_is_closed(tmp_path: Path) -> None:
    begun = asyncio.Event()
    async with asyncio.TaskGroup() as group, SqliteStore(tmp_path / "store.db") as store:
        group.create_task(_expect_unavailable(read_to_the_end(store, begun)))
        await begun.wait()


async def _expect_unavailable(part: Coroutine[None, None, None]) -> None:
    with pytest.raises(Unavailable, match="closed"):
        await part


async def test_a_cancelled_write_still_wakes_watches(tmp_path: Path) -> None:
    async with (
        SqliteStore(tmp_path / "store.db") as store,
        watching(store, v2.Model) as changes,
        asyncio.TaskGroup() as group,
    ):
        await take(changes, 1)
        writer = group.create_task(store.create(a_model()))
        await asyncio.sleep(0)
        writer.cancel()
        assert told(await take(changes, 1)) == [("ADDED", "m")]


async def test_many_writers_lose_no_write(tmp_path: Path) -> None:
    async with SqliteStore(tmp_path / "store.db") as store:
        made = await asyncio.gather(*(store.create(a_model(f"m{n}")) for n in range(100)))
        versions = sorted(int(each.metadata.resourceVersion) for each in made)
        listed = (await store.list(v2.Model)).items
    assert versions == list(range(1, 101))
    assert {key_of(each) for each in listed} == {key_of(each) for each in made}
