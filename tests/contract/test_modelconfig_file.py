"""The model config in files keeps the contract, and what a file adds to it."""

import asyncio
import os
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from maserve.base.clock import SystemClock
from maserve.base.errors import Invalid, NotFound, Unavailable
from maserve.base.keys import ClusterId, Key, ModelName
from maserve.host import DataFolder
from maserve.modelconfig.file import FileModelConfigProvider, locked_list
from maserve.modelconfig.file.locked import lock_path, locked_list_now
from maserve.testing.clock import FakeClock
from maserve.testing.modelconfig_contract import (
    EAST,
    SERVER,
    ModelConfigContract,
    an_empty_config,
    an_entry,
)


class HastyClock(FakeClock):
    """Does not sleep: the time it would have slept is over at once."""

    async def sleep(self, seconds: float) -> None:
        self.advance(seconds)
        await asyncio.sleep(0)


Heard = list[tuple[Key, ClusterId]]


@pytest.fixture
def heard() -> Heard:
    return []


@pytest.fixture
def list_path(tmp_path: Path) -> Path:
    return DataFolder(tmp_path).model_config(ClusterId("east"), SERVER)


@pytest.fixture
async def provider(tmp_path: Path, heard: Heard) -> AsyncIterator[FileModelConfigProvider]:
    made = FileModelConfigProvider(
        DataFolder(tmp_path),
        changed=lambda key, cluster: heard.append((key, cluster)),
        clock=SystemClock(),
    )
    async with made:
        yield made


class TestFileModelConfigProvider(ModelConfigContract):
    @pytest.fixture
    async def provider(self, tmp_path: Path) -> AsyncIterator[FileModelConfigProvider]:
        made = FileModelConfigProvider(
            DataFolder(tmp_path), changed=lambda _key, _cluster: None, clock=SystemClock()
        )
        async with made:
            yield made


async def test_only_writes_that_change_something_are_announced(
    provider: FileModelConfigProvider, heard: Heard
) -> None:
    await an_empty_config(provider)
    await provider.add_model_to_config(SERVER, EAST, an_entry())
    await provider.add_model_to_config(SERVER, EAST, an_entry())
    await provider.remove_model_from_config(SERVER, EAST, "dep", ModelName("none"))
    await provider.delete_model_config(SERVER, EAST)
    await provider.delete_model_config(SERVER, EAST)
    assert heard == [(SERVER, ClusterId("east"))] * 3


async def test_deleting_leaves_no_file_and_no_folder(
    provider: FileModelConfigProvider, tmp_path: Path
) -> None:
    await an_empty_config(provider)
    await provider.add_model_to_config(SERVER, EAST, an_entry())
    await provider.delete_model_config(SERVER, EAST)
    assert list(tmp_path.iterdir()) == []


async def test_deleting_keeps_what_is_somebody_elses(
    provider: FileModelConfigProvider, list_path: Path
) -> None:
    await an_empty_config(provider)
    (list_path.parent / "cache").mkdir()
    await provider.delete_model_config(SERVER, EAST)
    assert [path.name for path in list_path.parent.iterdir()] == ["cache"]


@pytest.mark.parametrize(
    "content",
    [b"{", b"{}", b'[{"phase": "serving"}]', b"\xff\xfe[]", b'[{"name": "a", "phase": 3}]'],
    ids=["cut", "no list", "no name", "no text", "wrong type"],
)
async def test_malformed_list_is_an_error_and_stays_as_it_is(
    provider: FileModelConfigProvider, list_path: Path, heard: Heard, content: bytes
) -> None:
    await an_empty_config(provider)
    heard.clear()
    list_path.write_bytes(content)
    with pytest.raises(Invalid, match=r"model-list\.json"):
        await provider.get_models_from_config(SERVER, EAST)
    with pytest.raises(Invalid, match=r"model-list\.json"):
        await provider.add_model_to_config(SERVER, EAST, an_entry())
    with pytest.raises(Invalid, match=r"model-list\.json"):
        await provider.remove_model_from_config(SERVER, EAST, "dep", ModelName("m1"))
    await an_empty_config(provider)
    assert list_path.read_bytes() == content
    assert heard == []


async def test_file_can_be_read_whole_at_any_moment(
    provider: FileModelConfigProvider, list_path: Path
) -> None:
    await an_empty_config(provider)
    before = list_path.open("rb")
    await provider.add_model_to_config(SERVER, EAST, an_entry())
    with before:
        assert before.read() == b"[]\n"
    assert b'"m1"' in list_path.read_bytes()


async def test_unwritable_place_is_unavailable_naming_the_path(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    provider = FileModelConfigProvider(
        DataFolder(tmp_path / "file"),
        changed=lambda _key, _cluster: None,
        clock=SystemClock(),
    )
    async with provider:
        with pytest.raises(Unavailable, match=str(tmp_path / "file")):
            await an_empty_config(provider)


async def test_full_disk_is_unavailable_and_changes_nothing(
    provider: FileModelConfigProvider, list_path: Path, heard: Heard
) -> None:
    await an_empty_config(provider)
    heard.clear()
    # Writing to this device fails like writing to a full disk.
    list_path.with_name(f".{list_path.name}.{os.getpid()}.tmp").symlink_to("/dev/full")
    with pytest.raises(Unavailable, match=str(list_path)):
        await provider.add_model_to_config(SERVER, EAST, an_entry())
    assert list_path.read_bytes() == b"[]\n"
    assert heard == []


async def test_write_waits_for_whoever_holds_the_lock(
    provider: FileModelConfigProvider, list_path: Path
) -> None:
    await an_empty_config(provider)
    async with asyncio.TaskGroup() as group:
        with locked_list(list_path):
            writing = group.create_task(provider.add_model_to_config(SERVER, EAST, an_entry()))
            await provider.check_model_config_exists(SERVER, EAST)
            assert await provider.get_models_from_config(SERVER, EAST) == ()
            assert not writing.done()
    assert await provider.get_models_from_config(SERVER, EAST) == (an_entry(),)


async def test_lock_that_is_never_freed_is_unavailable(list_path: Path, tmp_path: Path) -> None:
    provider = FileModelConfigProvider(
        DataFolder(tmp_path), changed=lambda _key, _cluster: None, clock=HastyClock()
    )
    async with provider:
        await an_empty_config(provider)
        with locked_list(list_path), pytest.raises(Unavailable, match=r"model-list\.json\.lock"):
            await provider.add_model_to_config(SERVER, EAST, an_entry())


async def test_lock_of_a_deleted_list_excludes_nobody_from_the_next(
    provider: FileModelConfigProvider, list_path: Path
) -> None:
    await an_empty_config(provider)
    async with asyncio.TaskGroup() as group:
        with locked_list(list_path):
            group.create_task(provider.delete_model_config(SERVER, EAST))
            await provider.check_model_config_exists(SERVER, EAST)
    await an_empty_config(provider)
    with locked_list(list_path):
        assert list_path.with_name("model-list.json.lock").exists()


def test_waiter_follows_to_the_lock_of_the_list_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "model-list.json"
    with ThreadPoolExecutor(max_workers=1) as threads:
        with locked_list(path):
            waiting = threads.submit(hold_and_look, path)
            wait_for_second_descriptor(lock_path(path))
            lock_path(path).unlink()
        assert waiting.result(timeout=2)


def hold_and_look(path: Path) -> bool:
    """Tell whether nobody else can have the lock while we hold it."""
    with locked_list(path):
        try:
            with locked_list_now(path):
                return False
        except BlockingIOError:
            return True


def wait_for_second_descriptor(lock: Path) -> None:
    """Return once two descriptors of this process are on the lock file."""
    while sum(link.resolve() == lock for link in Path("/proc/self/fd").iterdir()) < 2:
        pass


def test_lock_without_a_folder_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFound), locked_list(tmp_path / "none" / "model-list.json"):
        pass
