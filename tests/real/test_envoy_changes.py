"""Changes of a real Envoy: acknowledged, coalesced, refused one by one, in a table of any size."""

import asyncio
import json
import os
import signal
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest

from maserve.base.errors import Invalid, Unavailable
from maserve.base.keys import ClusterId
from maserve.endpoints import Endpoint
from maserve.endpoints.local import LocalProvider, LocalPublisher
from maserve.envoy import EnvoySettings, Rejected, RouteRef
from maserve.testing.endpoints_contract import a_server
from maserve.testing.envoy_rig import (
    DISCOVERY,
    EAST,
    NAMESPACE,
    SERVER,
    SERVICE,
    WEST,
    Rig,
    StubReplica,
    discovery_rules,
    running_rig,
    serve,
    traffic,
    traffic_rules,
)
from maserve.wire import v2

# The start of a real Envoy.
pytestmark = [pytest.mark.real, pytest.mark.timeout(20)]


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    async with running_rig(tmp_path) as made:
        yield made


@pytest.fixture
async def replica() -> AsyncIterator[StubReplica]:
    async with StubReplica("only") as made:
        yield made


@pytest.fixture
async def client() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


def port_of(rig: Rig, cluster: ClusterId) -> int:
    """Take a port that the next listener of the cluster would get."""
    return rig.ports.allocate(f"envoy cluster {cluster}", 1)[0]


async def test_refused_listener_gets_another_port(rig: Rig) -> None:
    port = port_of(rig, EAST)
    with socket.create_server(("127.0.0.1", port)):
        assert (await rig.plane.ensure_cluster_listener(EAST))[1] != port


async def test_listener_closes_with_the_last_server_of_its_cluster(
    rig: Rig, replica: StubReplica
) -> None:
    await serve(rig, {EAST: [replica]}, model="m")
    address = rig.plane.find_cluster_listener(EAST)
    await rig.plane.remove_route(DISCOVERY)
    await rig.plane.remove_service(None, NAMESPACE, f"{SERVER}-endpoints")
    await rig.plane.remove_route(traffic(EAST))
    assert rig.plane.find_cluster_listener(EAST) == address
    await rig.plane.remove_service(EAST, NAMESPACE, SERVICE)
    assert rig.plane.find_cluster_listener(EAST) is None
    assert rig.ports.owners() == ("gateway",)


async def test_listener_that_was_asked_for_stays_while_another_server_leaves(
    rig: Rig, replica: StubReplica
) -> None:
    await serve(rig, {EAST: [replica]}, model="m")
    address = await rig.plane.ensure_cluster_listener(EAST)
    await rig.plane.remove_service(None, NAMESPACE, f"{SERVER}-endpoints")
    await rig.plane.remove_route(traffic(EAST))
    await rig.plane.remove_service(EAST, NAMESPACE, SERVICE)
    assert await rig.plane.ensure_cluster_listener(EAST) == address
    await rig.plane.set_ingresses("other", f"{SERVER}-endpoints", {EAST: address})
    await rig.plane.remove_service(None, "other", f"{SERVER}-endpoints")
    assert rig.plane.find_cluster_listener(EAST) is None


async def test_listener_whose_publication_failed_closes_with_its_server(
    rig: Rig, replica: StubReplica
) -> None:
    """Resolved, and then not published: one address cannot be, or the gateway takes no change."""
    publisher, server = LocalPublisher(rig.plane), a_server()
    for host, scheme in (("127.0.0.1", "https"), ("example.org", "http")):
        east = await LocalProvider(rig.plane).resolve(v2.ClusterTarget(cluster_id=EAST))
        unfit = Endpoint(host=host, port=9443, scheme=scheme)
        with pytest.raises(Invalid):
            await publisher.sync(server, {EAST: east, WEST: unfit})
        await publisher.delete(server)
        assert rig.plane.find_cluster_listener(EAST) is None
    assert rig.ports.owners() == ("gateway",)


class StuckPorts:
    """Gives one port to everybody, whoever has it."""

    def __init__(self, port: int) -> None:
        self._port = port

    def allocate(self, owner: str, count: int) -> tuple[int, ...]:
        return (self._port,)

    def replace(self, owner: str, count: int) -> tuple[int, ...]:
        return (self._port,)

    def release(self, owner: str) -> None:
        return None


async def test_refused_change_says_why_and_blocks_no_other_one(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ports = StuckPorts(taken.getsockname()[1])
        async with running_rig(tmp_path, listener_ports=ports) as rig:
            refused, taken_over = await asyncio.gather(
                rig.plane.ensure_cluster_listener(EAST),
                rig.plane.set_route(DISCOVERY, discovery_rules()),
                return_exceptions=True,
            )
            assert taken_over is None
            assert isinstance(refused, Rejected)
            assert "Address already in use" in str(refused)
            assert await rig.plane.is_route_live(DISCOVERY)
            await rig.plane.set_endpoints(None, NAMESPACE, "s", [("127.0.0.1", 9)])
            taken.close()
            assert await rig.plane.ensure_cluster_listener(EAST)


async def test_listener_that_could_not_be_opened_is_not_kept_for_anybody(tmp_path: Path) -> None:
    settings = EnvoySettings(folder=tmp_path / "envoy", acknowledge_timeout_s=0.3)
    async with running_rig(tmp_path, settings) as rig:
        pid = rig.plane.process.pid
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        try:
            with pytest.raises(Unavailable):
                await rig.plane.ensure_cluster_listener(EAST)
        finally:
            os.kill(pid, signal.SIGCONT)
        await until_done(lambda: LocalPublisher(rig.plane).delete(a_server()))
        assert rig.plane.find_cluster_listener(EAST) is None


async def until_done(work: Callable[[], Awaitable[None]]) -> None:
    """Do it again until the gateway takes it."""
    async with asyncio.timeout(10):
        while True:
            with suppress(Unavailable):
                return await work()


async def test_younger_route_of_another_namespace_is_not_live_and_not_served(
    rig: Rig, replica: StubReplica, client: aiohttp.ClientSession
) -> None:
    await serve(rig, {EAST: [replica]}, model="mine")
    await rig.plane.set_endpoints(EAST, "other", SERVICE, [replica.address])
    younger = replace(DISCOVERY, namespace="other")
    await rig.plane.set_route(replace(traffic(EAST), namespace="other"), traffic_rules("theirs"))
    await rig.plane.set_route(younger, discovery_rules())
    await rig.plane.set_ingresses(
        "other", f"{SERVER}-endpoints", {EAST: await rig.plane.ensure_cluster_listener(EAST)}
    )
    answer = await (await client.post(f"{rig.url}/infer", json={})).json()
    assert answer["model_name"] == "mine"
    with pytest.raises(Unavailable, match=f"serves /{SERVER} for namespace {NAMESPACE}"):
        await rig.plane.is_route_live(younger)
    assert await rig.plane.is_route_live(DISCOVERY)
    await rig.plane.remove_route(DISCOVERY)
    answer = await (await client.post(f"{rig.url}/infer", json={})).json()
    assert answer["model_name"] == "theirs"
    assert await rig.plane.is_route_live(younger)


async def test_route_of_a_cluster_without_a_listener_is_not_live(rig: Rig) -> None:
    await rig.plane.set_route(traffic(EAST), traffic_rules("m"))
    assert not await rig.plane.is_route_live(traffic(EAST))
    await rig.plane.ensure_cluster_listener(EAST)
    assert await rig.plane.is_route_live(traffic(EAST))


async def test_route_known_to_be_live_is_not_asked_for_again(
    rig: Rig, replica: StubReplica
) -> None:
    await serve(rig, {EAST: [replica]}, model="m")
    assert await rig.plane.is_route_live(DISCOVERY)
    stopped = rig.plane.process.pid
    assert stopped is not None
    os.kill(stopped, signal.SIGSTOP)  # whoever asks it now waits
    try:
        async with asyncio.timeout(10):
            answers = [await rig.plane.is_route_live(DISCOVERY) for _ in range(1000)]
    finally:
        os.kill(stopped, signal.SIGCONT)
    assert all(answers)


async def test_changes_at_the_same_time_share_few_swaps(rig: Rig) -> None:
    await rig.plane.ensure_cluster_listener(EAST)
    routes = [
        RouteRef(cluster=EAST, namespace=NAMESPACE, name=f"s{number}-traffic")
        for number in range(50)
    ]
    swaps_before = await table_updates(rig)
    began = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for number, ref in enumerate(routes):
            group.create_task(rig.plane.set_route(ref, traffic_rules("m", server=f"s{number}")))
    print(f"50 changes at once: {(time.perf_counter() - began) * 1000:.0f} ms")
    assert await table_updates(rig) - swaps_before <= 4
    assert all([await rig.plane.is_route_live(ref) for ref in routes])


async def table_updates(rig: Rig) -> int:
    """Return how many route tables Envoy has taken for the cluster."""
    connector = aiohttp.UnixConnector(path=str(rig.settings.folder / "admin.sock"))
    async with aiohttp.ClientSession(connector=connector) as session:
        answer = await session.get("http://envoy/stats?filter=rds.*update_success&format=json")
        stats = json.loads(await answer.text())["stats"]
    return sum(stat["value"] for stat in stats if "cluster/east" in stat["name"])
