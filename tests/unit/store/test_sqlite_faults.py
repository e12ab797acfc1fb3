"""Full disks, damaged files, foreign files, newer files, busy files."""

import asyncio
import contextlib
import sqlite3
from pathlib import Path

import pytest

from maserve.base.errors import Unavailable
from maserve.base.keys import Key
from maserve.store import Unusable
from maserve.store.sqlite import SqliteStore, StoreSettings
from maserve.store.sqlite.database import Transaction
from maserve.testing.store_cases import a_model, described
from maserve.wire import v2

KEY = Key("prod", "m")


async def limit_pages(store: SqliteStore, spare: int) -> None:
    """Let the file grow by `spare` pages more, as on an almost full disk."""

    def work(transaction: Transaction) -> None:
        connection = transaction.connection
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages + spare}")

    await store._database.read(work)


async def lift_limit(store: SqliteStore) -> None:
    """Free the disk again."""
    await limit_pages(store, 1_000_000)


async def test_a_full_disk_is_unavailable_and_nothing_is_half_written(tmp_path: Path) -> None:
    file = tmp_path / "store.db"
    async with SqliteStore(file) as store:
        before = await store.create(a_model())
        await limit_pages(store, 2)
        with pytest.raises(Unavailable, match="disk is full") as caught:
            await store.update(described(before, "x" * 500_000))
        assert str(file) in str(caught.value)
        assert await store.get(v2.Model, KEY) == before
        assert (await store.list(v2.Model)).version == before.metadata.resourceVersion


async def test_a_store_goes_on_once_the_disk_has_room_again(tmp_path: Path) -> None:
    async with SqliteStore(tmp_path / "store.db") as store:
        made = await store.create(a_model())
        await limit_pages(store, 2)
        with pytest.raises(Unavailable):
            await store.update(described(made, "x" * 500_000))
        await lift_limit(store)
        updated = await store.update(described(made, "y" * 500_000))
        assert int(updated.metadata.resourceVersion) == int(made.metadata.resourceVersion) + 1


async def test_of_writes_that_share_a_commit_only_the_too_large_fails(tmp_path: Path) -> None:
    async with SqliteStore(tmp_path / "store.db") as store:
        await store.create(a_model())
        await limit_pages(store, 8)
        outcomes = await asyncio.gather(
            store.create(a_model("a")),
            store.create(a_model("big", text="x" * 500_000)),
            store.create(a_model("b")),
            return_exceptions=True,
        )
        listed = await store.list(v2.Model)
        assert [type(each) for each in outcomes] == [v2.Model, Unavailable, v2.Model]
        assert [each.metadata.name for each in listed.items] == ["a", "b", "m"]


@pytest.mark.parametrize(
    "content",
    [b"not a database at all, but text " * 100, b"SQLite format 3\x00" + b"\xff" * 4000],
    ids=["text", "broken header"],
)
async def test_a_damaged_file_is_refused_and_left_as_it_is(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "store.db"
    file.write_bytes(content)
    with pytest.raises(Unusable, match="restore a copy") as caught:
        await SqliteStore(file).__aenter__()
    assert caught.value.file == str(file)
    assert file.read_bytes() == content


async def test_a_file_damaged_inside_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "store.db"
    async with SqliteStore(file) as store:
        for number in range(30):
            await store.create(a_model(f"m{number}", text="x" * 3000))
    sound = file.read_bytes()
    middle = len(sound) // 2 // 4096 * 4096
    file.write_bytes(sound[:middle] + b"\xa5" * 8192 + sound[middle + 8192 :])
    damaged = file.read_bytes()
    with pytest.raises(Unusable, match="is damaged"):
        await SqliteStore(file).__aenter__()
    assert file.read_bytes() == damaged


async def test_a_file_of_a_newer_program_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "store.db"
    async with SqliteStore(file):
        pass
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(Unusable, match="schema version 99"):
        await SqliteStore(file).__aenter__()


async def test_another_programs_database_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "store.db"
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    with pytest.raises(Unusable, match="another program's"):
        await SqliteStore(file).__aenter__()


async def test_a_missing_folder_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="cannot be opened"):
        await SqliteStore(tmp_path / "none" / "store.db").__aenter__()


async def test_a_file_held_by_another_writer_is_unavailable(tmp_path: Path) -> None:
    file = tmp_path / "store.db"
    async with SqliteStore(file, settings=StoreSettings(busy_timeout_s=0.05)) as store:
        with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(Unavailable, match="another program holds the file"):
                await store.create(a_model())
            other.execute("ROLLBACK")
        assert await store.create(a_model()) == await store.get(v2.Model, KEY)


async def test_a_closed_store_is_unavailable(tmp_path: Path) -> None:
    async with SqliteStore(tmp_path / "store.db") as store:
        pass
    with pytest.raises(Unavailable, match="closed"):
        await store.create(a_model())
