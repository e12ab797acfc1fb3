"""A full disk under the data folder: it is said, nothing is lost, and it goes on with space."""

import asyncio
import ctypes
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from maserve.base.clock import SystemClock
from maserve.base.errors import Unavailable
from maserve.base.keys import Key
from maserve.conditions import find_condition
from maserve.host.http import HttpClient
from maserve.testing.live import kill_process
from maserve.testing.live_story import (
    DEPLOYMENT,
    NAMESPACE,
    WAIT_S,
    Story,
    a_story,
    is_complete,
)
from maserve.testing.resources import a_model
from maserve.testing.tiny_models import REQUEST
from maserve.wire import v2

# A control plane and an engine; failed downloads are tried again after seconds.
pytestmark = [
    pytest.mark.real,
    pytest.mark.timeout(120),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small disk"),
]

SIZE = b"size=48m"
SPARE_BYTES = 1 << 20
WEIGHTS_BYTES = 8 << 20
_DETACH = 2


class Disk:
    """A small disk of its own, which can be filled and freed."""

    def __init__(self, folder: Path) -> None:
        self._filler = folder / "filler"

    def fill(self, *, spare_bytes: int = 0) -> None:
        """Use all space but `spare_bytes`."""
        with self._filler.open("ab", buffering=0) as file:
            while self._grow(file.write):
                pass
        os.truncate(self._filler, max(0, self._filler.stat().st_size - spare_bytes))

    def free(self) -> None:
        self._filler.unlink()

    def _grow(self, write: Callable[[bytes], int | None]) -> bool:
        try:
            return bool(write(bytes(1 << 16)))
        except OSError:
            return False


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    folder = tmp_path / "data"
    folder.mkdir()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"tmpfs", os.fsencode(folder), b"tmpfs", 0, SIZE) != 0:
        pytest.skip(f"no small disk: {os.strerror(ctypes.get_errno())}")
    yield Disk(folder)
    libc.umount2(os.fsencode(folder), _DETACH)


async def is_served(story: Story) -> bool:
    async with HttpClient() as http:
        answer = await http.request("POST", story.url, timeout_s=10, body=REQUEST.encode())
    return answer.status == 200


def listed(story: Story) -> list[str]:
    """Return the models of the server's list, which must be whole at any time."""
    (path,) = story.plane.data.glob("clusters/*/*/*/model-list.json")
    return [row["name"] for row in json.loads(path.read_text())]


def half_done(story: Story) -> list[Path]:
    data = story.plane.data
    return [*data.glob("clusters/*/*/*/cache/tmp/*"), *data.rglob("*.tmp"), *data.rglob(".*.tmp")]


def says(type_: str, text: str) -> Callable[[v2.Deployment], bool]:
    def holds(deployment: v2.Deployment) -> bool:
        found = find_condition(deployment.status.conditions, type_)
        return found is not None and text in found.message

    return holds


async def a_big_model(story: Story, name: str) -> None:
    await story.model(name)
    weights = story.folder / "models" / name / "1" / "weights.bin"
    weights.write_bytes(bytes(WEIGHTS_BYTES))


async def test_a_download_that_finds_no_space_is_said_and_ends_once_there_is_some(
    tmp_path: Path, disk: Disk
) -> None:
    async with a_story(tmp_path) as story:
        await story.model("small")
        await a_big_model(story, "big")
        await story.server(clusters=("c1",), replicas=1)
        await story.roll("small")
        disk.fill(spare_bytes=SPARE_BYTES)

        await story.ask("big")
        waiting = await story.until(says("CanaryRolloutComplete-c1", "No space left on device"))
        found = find_condition(waiting.status.conditions, "CanaryRolloutComplete-c1")
        assert found is not None
        print(found.message)
        assert "download failed, it is tried again: " in found.message
        assert waiting.status.current_revision.name == "small"
        assert await is_served(story)

        disk.free()
        await story.until(lambda now: is_complete(now, "big"))
        assert await is_served(story)
        assert half_done(story) == []


async def test_a_full_disk_loses_nothing_and_work_goes_on_with_space(
    tmp_path: Path, disk: Disk
) -> None:
    async with a_story(tmp_path) as story:
        await story.model("one")
        await story.model("two")
        await story.server(clusters=("c1",), replicas=1)
        await story.roll("one")
        disk.fill()

        bulky = a_model("bulky", namespace=NAMESPACE)
        bulky.spec.description = "x" * 1_000_000
        with pytest.raises(Unavailable) as caught:
            await story.client.create(bulky)
        print(caught.value)
        assert "maserve.db: the disk is full: free some space, nothing was written" in str(
            caught.value
        )
        assert await story.client.find(v2.Model, Key(NAMESPACE, "bulky")) is None
        stored = await story.client.get(v2.Deployment, DEPLOYMENT)
        assert stored.status.current_revision.name == "one"
        assert listed(story) == ["one"]
        assert await is_served(story)

        disk.fill(spare_bytes=32_768)
        await story.ask("two")
        disk.free()
        await story.until(lambda now: is_complete(now, "two"))
        assert listed(story) == ["two"]
        assert await is_served(story)
        assert half_done(story) == []


async def test_an_engine_that_dies_on_a_full_disk_comes_back_with_space(
    tmp_path: Path, disk: Disk
) -> None:
    async with a_story(tmp_path) as story:
        await story.model("one")
        await story.server(clusters=("c1",), replicas=1)
        await story.roll("one")
        control_plane = story.plane.pid
        (engine,) = [pid for name, pid in story.plane.program_pids().items() if "/engine" in name]
        disk.fill()

        kill_process(engine)
        await SystemClock().sleep(3)
        disk.free()
        await story.serves_again(engine)
        # On a full disk the status could not say that the cluster did not serve meanwhile.
        async with asyncio.timeout(WAIT_S):
            while not await is_served(story):
                await SystemClock().sleep(0.05)

        assert story.plane.pid == control_plane
        assert half_done(story) == []
