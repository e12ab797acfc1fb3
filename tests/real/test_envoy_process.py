"""The Envoy process: restarted when it dies, adopted, ended gracefully, clear about its port."""

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from maserve.base.errors import Invalid, Unavailable
from maserve.envoy import EnvoySettings
from maserve.host import write_json
from maserve.testing.envoy_rig import (
    DISCOVERY,
    EAST,
    NAMESPACE,
    SERVICE,
    Load,
    Rig,
    StubReplica,
    end_envoy,
    one_life,
    point_at,
    running_rig,
    serve,
    set_replicas,
)
from maserve.testing.loopback import free_port

# Several starts of a real Envoy, with load meanwhile.
pytestmark = [pytest.mark.real, pytest.mark.timeout(20)]


@pytest.fixture
async def replica() -> AsyncIterator[StubReplica]:
    async with StubReplica("only", delay_s=0.005) as made:
        yield made


@pytest.fixture
async def client() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


@pytest.fixture
async def folder(tmp_path: Path) -> AsyncIterator[Path]:
    yield tmp_path
    await end_envoy(tmp_path)


async def until_noticed(rig: Rig, epoch: int) -> None:
    async with asyncio.timeout(10):
        while rig.plane.process.epoch == epoch:  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(0)


async def until_live(rig: Rig) -> None:
    async with asyncio.timeout(10):
        while not await is_live(rig):  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(0.01)


async def is_live(rig: Rig) -> bool:
    try:
        return await rig.plane.is_route_live(DISCOVERY)
    except Unavailable:
        return False


async def test_killed_envoy_is_restarted_and_serves_the_same(
    tmp_path: Path, replica: StubReplica
) -> None:
    async with running_rig(tmp_path) as rig:
        await serve(rig, {EAST: [replica]}, model="m")
        before = rig.plane.process.pid
        assert before is not None
        load = Load(f"{rig.url}/infer", rate_per_s=100)
        async with load.running():
            await asyncio.sleep(0.3)
            epoch = rig.plane.process.epoch
            os.kill(before, signal.SIGKILL)
            await until_noticed(rig, epoch)
            await until_live(rig)
        down = [failure.count for failure in load.summary.failures]
        print(f"sent {load.summary.sent}, failed while it was down {sum(down)}")
        assert rig.plane.process.pid not in (None, before)
        after = Load(f"{rig.url}/infer", rate_per_s=100)
        async with after.running():
            await asyncio.sleep(0.3)
    assert sum(down) > 0
    assert (after.summary.sent > 0, after.summary.failed) == (True, 0)
    assert load.summary.wrong == 0


async def test_envoy_that_hangs_is_replaced(
    tmp_path: Path, replica: StubReplica, client: aiohttp.ClientSession
) -> None:
    settings = EnvoySettings(folder=tmp_path / "envoy", liveness_period_s=0.1, liveness_failures=2)
    async with running_rig(tmp_path, settings) as rig:
        await serve(rig, {EAST: [replica]}, model="m")
        epoch, before = rig.plane.process.epoch, rig.plane.process.pid
        os.kill(before or 0, signal.SIGSTOP)
        await until_noticed(rig, epoch)
        await point_at(rig, EAST, "m2")
        answer = await (await client.post(f"{rig.url}/infer", json={})).json()
        assert (answer["model_name"], rig.plane.process.pid != before) == ("m2", True)


async def test_route_is_not_live_on_hearsay_of_an_earlier_process(
    tmp_path: Path, replica: StubReplica
) -> None:
    async with running_rig(tmp_path) as rig:
        await serve(rig, {EAST: [replica]}, model="m")
        assert await rig.plane.is_route_live(DISCOVERY)
        os.kill(rig.plane.process.pid or 0, signal.SIGSTOP)
        pid = rig.plane.process.pid
        assert await rig.plane.is_route_live(DISCOVERY)  # known of this process
        epoch = rig.plane.process.epoch
        os.kill(pid or 0, signal.SIGKILL)
        await until_noticed(rig, epoch)
        with pytest.raises(Unavailable):
            await rig.plane.is_route_live(DISCOVERY)


async def test_changes_while_envoy_is_down_are_served_once_it_is_back(
    tmp_path: Path, replica: StubReplica, client: aiohttp.ClientSession
) -> None:
    async with running_rig(tmp_path) as rig:
        await serve(rig, {EAST: [replica]}, model="m1")
        os.kill(rig.plane.process.pid or 0, signal.SIGKILL)
        await point_at(rig, EAST, "m2")
        answer = await (await client.post(f"{rig.url}/infer", json={})).json()
        assert answer["model_name"] == "m2"


async def test_second_life_adopts_envoy_and_no_request_fails(
    folder: Path, replica: StubReplica
) -> None:
    async with one_life(folder) as rig:
        await serve(rig, {EAST: [replica]}, model="m1")
        first = rig.plane.process.pid
        load = Load(f"{rig.url}/infer", rate_per_s=100)
    async with load.running():
        await asyncio.sleep(0.2)
        async with one_life(folder) as rig:
            second = rig.plane.process.pid
            assert await rig.plane.is_route_live(DISCOVERY)
            assert rig.plane.find_endpoints(EAST, NAMESPACE, SERVICE) is not None
            await point_at(rig, EAST, "m2")
            await asyncio.sleep(0.2)
    assert first == second
    assert (load.summary.failures, load.summary.sent > 30) == ((), True)
    assert set(load.summary.answered_by) == {"m1", "m2"}


async def test_third_life_swaps_nothing_when_nothing_has_changed(
    folder: Path, replica: StubReplica
) -> None:
    async with one_life(folder) as rig:
        await serve(rig, {EAST: [replica]}, model="m1")
    discovery = sorted((folder / "envoy" / "discovery").rglob("*.json"))
    before = [path.stat().st_ino for path in discovery]
    async with one_life(folder):
        assert [path.stat().st_ino for path in discovery] == before


async def test_listener_that_was_opened_for_nothing_is_gone_in_the_next_life(
    folder: Path,
) -> None:
    async with one_life(folder) as rig:
        await rig.plane.ensure_cluster_listener(EAST)
    async with one_life(folder) as rig:
        assert (rig.plane.find_cluster_listener(EAST), rig.ports.owners()) == (None, ("gateway",))


async def test_envoy_that_died_meanwhile_is_started_on_the_kept_state(
    folder: Path, replica: StubReplica, client: aiohttp.ClientSession
) -> None:
    async with one_life(folder) as rig:
        await serve(rig, {EAST: [replica]}, model="m1")
    await end_envoy(folder)
    async with one_life(folder) as rig:
        assert await rig.plane.is_route_live(DISCOVERY)
        assert (await client.post(f"{rig.url}/infer", json={})).status == 200


async def test_envoy_that_ends_while_it_is_adopted_is_started_anew(
    folder: Path, replica: StubReplica, client: aiohttp.ClientSession
) -> None:
    async with one_life(folder) as rig:
        await serve(rig, {EAST: [replica]}, model="m1")
        pid = rig.plane.process.pid or 0
    os.kill(pid, signal.SIGSTOP)
    asyncio.get_running_loop().call_later(0.5, os.kill, pid, signal.SIGKILL)
    async with one_life(folder) as rig:
        assert rig.plane.process.pid not in (None, pid)
        assert (await client.post(f"{rig.url}/infer", json={})).status == 200


async def test_listener_whose_port_was_taken_meanwhile_moves(
    folder: Path, replica: StubReplica, client: aiohttp.ClientSession
) -> None:
    async with one_life(folder) as rig:
        await serve(rig, {EAST: [replica]}, model="m1")
        host, port = await rig.plane.ensure_cluster_listener(EAST)
    await end_envoy(folder)
    with socket.create_server((host, port)):
        async with one_life(folder) as rig:
            assert await rig.plane.ensure_cluster_listener(EAST) != (host, port)
            assert (await client.post(f"{rig.url}/infer", json={})).status == 200


async def test_occupied_gateway_port_is_named_and_nothing_is_started(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        write_json(folder / "ports.json", {"gateway": [port]})
        with pytest.raises(Invalid, match=rf"--gateway-address 127\.0\.0\.1:{port} is in use"):
            async with one_life(folder):
                pass
    assert not (folder / "envoy" / "bootstrap.json").exists()


async def test_gateway_port_of_one_that_is_just_ending_is_waited_for(folder: Path) -> None:
    taken = socket.create_server(("127.0.0.1", 0))
    write_json(folder / "ports.json", {"gateway": [taken.getsockname()[1]]})
    asyncio.get_running_loop().call_later(0.2, taken.close)
    async with one_life(folder) as rig:
        assert rig.plane.process.pid is not None


async def test_of_two_that_start_at_once_on_one_address_one_serves(folder: Path) -> None:
    port = free_port()
    homes = [folder / "one", folder / "two"]
    for home in homes:
        write_json(home / "ports.json", {"gateway": [port]})
    refused = asyncio.Event()
    told = await asyncio.gather(*(serve_until(refused, home) for home in homes))
    assert sorted(told) == ["", f"--gateway-address 127.0.0.1:{port} is in use; choose another one"]
    assert [home for home in homes if any((home / "processes").iterdir())] == []


async def serve_until(refused: asyncio.Event, folder: Path) -> str:
    """Run a data plane until another one is refused; return why this one is, empty if it is not."""
    try:
        async with running_rig(folder):
            await refused.wait()
    except Invalid as error:
        refused.set()
        return str(error)
    return ""


async def test_gateway_moves_to_another_address_without_a_restart(
    folder: Path, replica: StubReplica, client: aiohttp.ClientSession
) -> None:
    async with one_life(folder) as rig:
        await serve(rig, {EAST: [replica]}, model="m1")
        pid = rig.plane.process.pid
        rig.ports.replace("gateway", 1)
    async with one_life(folder) as rig:
        assert rig.plane.process.pid == pid
        assert (await client.post(f"{rig.url}/infer", json={})).status == 200


async def test_broken_state_file_is_named_and_kept(folder: Path) -> None:
    state = folder / "envoy" / "state.json"
    state.parent.mkdir()
    state.write_text('{"format": 1')
    with pytest.raises(Invalid, match=str(state)):
        async with one_life(folder):
            pass
    assert state.read_text() == '{"format": 1'


async def test_clean_stop_lets_a_request_in_flight_end(
    tmp_path: Path, client: aiohttp.ClientSession
) -> None:
    async with StubReplica("slow", delay_s=0.5) as slow, running_rig(tmp_path) as rig:
        await serve(rig, {EAST: [slow]}, model="m")
        async with asyncio.TaskGroup() as group:
            request = group.create_task(client.post(f"{rig.url}/infer", json={}))
            await asyncio.sleep(0.2)
            await rig.plane.stop()
        assert request.result().status == 200


async def test_stopped_envoy_is_not_started_again(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await rig.plane.stop()
        await asyncio.sleep(0.2)
        assert rig.plane.process.pid is None
        assert rig.supervisor.find("envoy") is None


async def test_data_folder_with_a_long_path_works(
    tmp_path: Path, replica: StubReplica, client: aiohttp.ClientSession
) -> None:
    long = tmp_path / ("deep-" * 20) / ("deeper-" * 10)
    long.mkdir(parents=True)
    async with running_rig(long, EnvoySettings(folder=long / "envoy")) as rig:
        await serve(rig, {EAST: [replica]}, model="m")
        await set_replicas(rig, EAST, [replica])
        assert (await client.post(f"{rig.url}/infer", json={})).status == 200
