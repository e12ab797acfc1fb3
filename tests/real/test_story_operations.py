"""What an operator does with a server that is under load, and with the program itself."""

import asyncio
import os
import signal
import socket
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from maserve.testing.live import LiveControlPlane
from maserve.testing.live_story import Story, a_story, fast_settings
from maserve.testing.load_results import LoadSummary
from maserve.testing.tiny_models import REQUEST

# Control planes and engines start and drain.
pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]


async def serving(story: Story, *, clusters: tuple[str, ...]) -> None:
    await story.model("blue")
    await story.server(clusters=clusters)
    await story.roll("blue")


def expect_nothing_lost(what: str, summary: LoadSummary) -> None:
    print(f"{what}: {summary.to_json()}")
    assert (summary.failed, summary.failures) == (0, ())
    assert set(summary.answered_by) == {"blue"}
    assert summary.sent > 100


async def test_scaling_under_load_loses_no_request_and_resources_replace_nothing(
    tmp_path: Path,
) -> None:
    async with a_story(tmp_path) as story:
        await serving(story, clusters=("c1",))
        first = story.plane.data_plane_pids()
        async with story.load() as load:
            await story.server(clusters=("c1",), replicas=3)
            await story.only_loaded("blue")
            await story.server(clusters=("c1",), replicas=1)
            await story.server(clusters=("c1",), replicas=1, cpu=2)
            now = await story.data_plane_of(engines=1)
            summary = await load.finish()
        expect_nothing_lost("2 to 3 to 1 replicas, then other resources", summary)
        assert now.items() <= first.items()
        view = await story.server_view()
        assert "ResourcesNotLimited" in [event.reason for event in view.events]


async def test_changed_setting_replaces_each_replica_once_cluster_by_cluster_under_load(
    tmp_path: Path,
) -> None:
    async with a_story(tmp_path) as story:
        await story.model("blue")
        await story.server(replicas=1)
        await story.roll("blue")
        before = story.plane.data_plane_pids()
        async with story.load() as load:
            await story.plane.kill()
            story.plane.use_settings(fast_settings(startup_failures=61))
            await story.plane.start()
            seen = await watched(story, story.replaced(before))
            await story.only_loaded("blue")
            after = story.plane.data_plane_pids()
            await story.plane.kill()
            await story.plane.start()
            await story.only_loaded("blue")
            summary = await load.finish()
        expect_nothing_lost("another startup probe", summary)
        assert seen[:2] == [(1, 1), (2, 1)]
        assert max(seen) <= (2, 2)
        assert story.plane.data_plane_pids() == after
        assert after["envoy"] == before["envoy"]


async def watched(story: Story, work: Coroutine[None, None, None]) -> list[tuple[int, int]]:
    """Do the work; return the numbers of engines that the clusters had, as they followed."""
    seen: list[tuple[int, int]] = []
    async with asyncio.TaskGroup() as group:
        task = group.create_task(work)
        while not task.done():
            names = story.plane.data_plane_pids()
            one, other = (sum(f"/{c}/" in name for name in names) for c in ("c1", "c2"))
            if seen[-1:] != [(one, other)]:
                seen.append((one, other))
            await asyncio.sleep(0.02)
    return seen


async def test_cluster_added_and_removed_under_load_loses_no_request(tmp_path: Path) -> None:
    """The Deployment gets to the new cluster by itself."""
    async with a_story(tmp_path) as story:
        await serving(story, clusters=("c1",))
        async with story.load() as load:
            await story.server(clusters=("c1", "c2"))
            await story.only_loaded("blue")
            await story.everywhere("blue", clusters=2)
            await story.server(clusters=("c2",))
            summary = await load.finish()
        expect_nothing_lost("a cluster added, the first one removed", summary)
        assert [path for path in story.plane.replica_files() if "/c1" in path] == []
        assert [name for name in story.plane.program_pids() if "/c1/" in name] == []


async def test_second_control_plane_on_a_data_folder_names_the_first(tmp_path: Path) -> None:
    async with a_story(tmp_path) as story:
        code, said = await story.plane.try_second()
    assert code == 1
    assert f"is in use by process {story_pid(said)}" in said
    assert f"answers on {story.plane.at.api}" in said


def story_pid(said: str) -> str:
    return said.partition("in use by process ")[2].partition(",")[0]


async def test_stop_keep_running_adoption_and_down(tmp_path: Path) -> None:
    async with a_story(tmp_path) as story:
        plane = story.plane
        await serving(story, clusters=("c1",))
        pids = plane.program_pids()
        async with story.load() as load:
            await plane.kill()
            await plane.start("--keep-running")
            await story.only_loaded("blue")
            assert plane.program_pids() == pids
            assert await plane.stop() == 0
            assert plane.program_pids() == pids
            summary = await load.finish()
        expect_nothing_lost("kill -9, start, stop with --keep-running", summary)

        assert "nothing of it runs any more" in await plane.down()
        assert plane.leftovers() == ()
        await expect_same_after_a_cold_start(story, plane)


async def expect_same_after_a_cold_start(story: Story, plane: LiveControlPlane) -> None:
    """Start on the folder of a stopped control plane: everything comes back as it was."""
    await plane.start()
    await story.serves_again(0)
    await story.only_loaded("blue")
    async with story.load() as load:
        await story.roll("blue")
        summary = await load.finish()
    assert summary.failed == 0
    assert await plane.stop() == 0
    assert plane.leftovers() == ()


async def take(address: str) -> socket.socket:
    """Listen where a program that has just been killed did."""
    host, _, port = address.partition(":")
    async with asyncio.timeout(2):
        while True:
            with suppress(OSError):
                return socket.create_server((host, int(port)))
            await asyncio.sleep(0.01)


async def test_down_ends_the_replicas_of_a_gateway_that_died_and_whose_address_is_taken(
    tmp_path: Path,
) -> None:
    async with a_story(tmp_path) as story:
        await story.server(clusters=("c1",), replicas=1)
        await story.plane.kill()
        os.kill(story.plane.program_pids()["envoy"], signal.SIGKILL)
        with await take(story.plane.at.gateway):
            assert "nothing of it runs any more" in await story.plane.down()
        assert story.plane.leftovers() == ()


async def test_request_that_is_sent_slowly_outlives_a_rollout_and_the_unload(
    tmp_path: Path,
) -> None:
    async with a_story(tmp_path) as story:
        await serving(story, clusters=("c1",))
        await story.model("green")
        host, _, port = story.plane.at.gateway.partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        head = (
            f"POST {urlsplit(story.url).path} HTTP/1.1\r\nHost: {host}\r\n"
            f"Content-Length: {len(REQUEST)}\r\nConnection: close\r\n\r\n"
        )
        writer.write((head + REQUEST[:10]).encode())
        await story.roll("green")
        await story.only_loaded("green")
        writer.write(REQUEST[10:].encode())
        answer = (await reader.read()).decode()
        writer.close()
        assert answer.split()[1] == "200", answer
        assert '"model_name":"green"' in answer
