"""Requests through two tiers of a real Envoy while everything behind it changes: none is lost."""

import asyncio
import io
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import aiohttp
import pytest

from maserve.envoy import EnvoySettings
from maserve.testing.envoy_rig import (
    DEPLOYMENT,
    EAST,
    NAMESPACE,
    SERVER,
    WEST,
    Load,
    Rig,
    StubReplica,
    point_at,
    running_rig,
    serve,
    set_replicas,
    traffic,
)
from maserve.testing.load_results import LoadSummary

# Load for some seconds and the start of a real Envoy.
pytestmark = [pytest.mark.real, pytest.mark.timeout(20)]

RATE_PER_S = 150
REPLICAS = ("e1", "e2", "w1", "w2")
Replicas = dict[str, StubReplica]


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    async with running_rig(tmp_path) as made:
        yield made


@pytest.fixture
async def replicas(rig: Rig) -> AsyncIterator[Replicas]:
    made = {name: StubReplica(name, delay_s=0.005) for name in REPLICAS}
    for replica in made.values():
        await replica.listen(0)
    await serve(rig, {EAST: [made["e1"], made["e2"]], WEST: [made["w1"], made["w2"]]}, model="m0")
    yield made
    for replica in made.values():
        await replica.kill()


@pytest.fixture
async def client() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


def expect_nothing_lost(summary: LoadSummary, at_least: int) -> None:
    print(f"sent {summary.sent}, latency {summary.latency_ms}, by {summary.answered_by}")
    assert (summary.failures, summary.failed, summary.wrong) == ((), 0, 0)
    assert summary.sent >= at_least


async def test_request_reaches_the_routed_model_in_both_clusters(
    rig: Rig, replicas: Replicas, client: aiohttp.ClientSession
) -> None:
    answers = [await (await client.post(f"{rig.url}/infer", json={})).json() for _ in range(40)]
    assert {answer["replica"] for answer in answers} == set(replicas)
    assert {answer["path"] for answer in answers} == {"/v2/models/m0/infer"}


async def test_server_path_gives_server_metadata(
    rig: Rig, replicas: Replicas, client: aiohttp.ClientSession
) -> None:
    answer = await (await client.get(f"{rig.gateway}/{SERVER}")).json()
    assert answer["path"] == "/v2"


async def test_flips_under_load_lose_nothing(rig: Rig, replicas: Replicas) -> None:
    load = Load(f"{rig.url}/infer", rate_per_s=RATE_PER_S)
    took_ms = []
    async with load.running():
        for number in range(20):
            began = asyncio.get_running_loop().time()
            await point_at(rig, EAST, f"m{number}")
            await point_at(rig, WEST, f"m{number}")
            took_ms.append((asyncio.get_running_loop().time() - began) * 1000)
            await asyncio.sleep(0.15)
    print(f"two flips: median {sorted(took_ms)[10]:.1f} ms, slowest {max(took_ms):.1f} ms")
    expect_nothing_lost(load.summary, at_least=RATE_PER_S * 2)
    assert len(load.summary.answered_by) == 20


async def test_acknowledged_flip_is_what_the_next_request_meets(
    rig: Rig, replicas: Replicas, client: aiohttp.ClientSession
) -> None:
    met = []
    for number in range(30):
        await asyncio.gather(point_at(rig, EAST, f"f{number}"), point_at(rig, WEST, f"f{number}"))
        assert await rig.plane.is_route_live(traffic(EAST))
        answer = await (await client.post(f"{rig.url}/infer", json={})).json()
        met.append(answer["model_name"])
    assert met == [f"f{number}" for number in range(30)]


async def test_replicas_that_come_and_go_lose_nothing(rig: Rig, replicas: Replicas) -> None:
    both = [replicas["e1"], replicas["e2"]]
    load = Load(f"{rig.url}/infer", rate_per_s=RATE_PER_S)
    async with load.running():
        for number in range(8):
            gone = both[number % 2]
            await set_replicas(rig, EAST, [both[(number + 1) % 2]])
            await asyncio.sleep(0.15)
            port = gone.address[1]
            await gone.kill()
            await gone.listen(port)
            await set_replicas(rig, EAST, both)
            await asyncio.sleep(0.1)
    expect_nothing_lost(load.summary, at_least=RATE_PER_S)


async def test_replica_killed_without_drain_loses_nothing(rig: Rig, replicas: Replicas) -> None:
    load = Load(f"{rig.url}/infer", rate_per_s=RATE_PER_S)
    async with load.running():
        for name in ("e1", "w2", "e2", "w1", "e1"):
            await asyncio.sleep(0.25)
            port = replicas[name].address[1]
            await replicas[name].kill()
            await asyncio.sleep(0.25)
            await replicas[name].listen(port)
    expect_nothing_lost(load.summary, at_least=RATE_PER_S)


async def test_cluster_without_replicas_loses_nothing(rig: Rig, replicas: Replicas) -> None:
    load = Load(f"{rig.url}/infer", rate_per_s=RATE_PER_S)
    async with load.running():
        for _ in range(3):
            await set_replicas(rig, EAST, [])
            await asyncio.sleep(0.2)
            await set_replicas(rig, EAST, [replicas["e1"], replicas["e2"]])
            await asyncio.sleep(0.2)
    expect_nothing_lost(load.summary, at_least=RATE_PER_S)


async def test_cluster_without_the_route_loses_nothing(rig: Rig, replicas: Replicas) -> None:
    load = Load(f"{rig.url}/infer", rate_per_s=RATE_PER_S)
    async with load.running():
        for _ in range(3):
            await rig.plane.remove_route(traffic(EAST))
            await asyncio.sleep(0.2)
            await point_at(rig, EAST, "m0")
            await asyncio.sleep(0.2)
    expect_nothing_lost(load.summary, at_least=RATE_PER_S)


async def test_cluster_that_leaves_loses_nothing(rig: Rig, replicas: Replicas) -> None:
    west = await rig.plane.ensure_cluster_listener(WEST)
    load = Load(f"{rig.url}/infer", rate_per_s=RATE_PER_S)
    async with load.running():
        await asyncio.sleep(0.2)
        await rig.plane.set_ingresses(NAMESPACE, f"{SERVER}-endpoints", {WEST: west})
        await rig.plane.remove_route(traffic(EAST))
        await rig.plane.remove_service(EAST, NAMESPACE, f"{SERVER}-inference-service")
        assert rig.plane.find_cluster_listener(EAST) is None
        await asyncio.sleep(0.3)
        await serve(rig, {EAST: [replicas["e1"]], WEST: [replicas["w1"]]}, model="m1")
        await asyncio.sleep(0.3)
    expect_nothing_lost(load.summary, at_least=RATE_PER_S // 2)


async def test_no_ready_replica_anywhere_is_503_in_json(
    rig: Rig, replicas: Replicas, client: aiohttp.ClientSession
) -> None:
    await set_replicas(rig, EAST, [])
    await set_replicas(rig, WEST, [])
    answer = await client.post(f"{rig.url}/infer", json={})
    assert answer.status == 503
    assert (await answer.json())["error"] == "no ready replica"
    assert "x-maserve-retry" not in answer.headers


async def test_known_deployment_without_a_route_in_any_cluster_is_503_in_json(
    rig: Rig, replicas: Replicas, client: aiohttp.ClientSession
) -> None:
    await rig.plane.remove_route(traffic(EAST))
    await rig.plane.remove_route(traffic(WEST))
    answer = await client.post(f"{rig.url}/infer", json={})
    assert answer.status == 503
    assert (await answer.json())["error"] == "no ready replica"


@pytest.mark.parametrize(
    ("path", "error"),
    [
        (f"/{SERVER}/other/infer", "unknown deployment"),
        (f"/other/{DEPLOYMENT}/infer", "unknown inference server"),
        (f"/{SERVER}/{DEPLOYMENT}x/infer", "unknown deployment"),
        (f"/{SERVER}x/{DEPLOYMENT}/infer", "unknown inference server"),
    ],
)
async def test_unknown_path_is_404_naming_the_unknown_part(
    rig: Rig, replicas: Replicas, client: aiohttp.ClientSession, path: str, error: str
) -> None:
    answer = await client.post(f"{rig.gateway}{path}", json={})
    assert answer.status == 404
    assert answer.content_type == "application/json"
    assert (await answer.json())["error"] == error


async def test_large_request_passes(
    rig: Rig, replicas: Replicas, client: aiohttp.ClientSession
) -> None:
    answer = await client.post(f"{rig.url}/infer", data=io.BytesIO(bytes(64 << 20)))
    assert (await answer.json())["size"] == 64 << 20


async def test_large_request_within_the_limit_is_retried_on_another_replica(
    rig: Rig, replicas: Replicas, client: aiohttp.ClientSession
) -> None:
    await set_replicas(rig, WEST, [])
    replicas["e1"].dies_on_request = True
    answers = [
        await client.post(f"{rig.url}/infer", data=io.BytesIO(bytes(8 << 20))) for _ in range(20)
    ]
    assert [answer.status for answer in answers] == [200] * 20
    assert replicas["e1"].seen  # all but never spared in 20 tosses of a coin


async def test_request_that_was_sent_slowly_meets_the_new_model_when_the_old_one_has_gone(
    rig: Rig, replicas: Replicas
) -> None:
    await set_replicas(rig, WEST, [])
    reader, writer = await asyncio.open_connection(*rig.plane.gateway_address)
    head = f"POST /{SERVER}/{DEPLOYMENT}/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n"
    writer.write(head.encode() + b"{")
    await until(lambda: any(replica.seen for replica in replicas.values()))
    await point_at(rig, EAST, "m1")
    for replica in replicas.values():
        replica.unloaded.add("m0")
    writer.write(b"}")
    status = await reader.readline()
    answer = await reader.readuntil(b"}")
    writer.close()
    assert status.split()[1] == b"200"
    assert b'"model_name": "m1"' in answer


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not is_so():  # noqa: ASYNC110 - a stub announces nothing
            await asyncio.sleep(0.01)


async def test_model_that_is_nowhere_is_told_with_the_words_of_the_replica(
    rig: Rig, replicas: Replicas, client: aiohttp.ClientSession
) -> None:
    for replica in replicas.values():
        replica.unloaded.add("m0")
    answer = await client.post(f"{rig.url}/infer", json={})
    assert (answer.status, await answer.json()) == (404, {"error": "unknown model"})


async def test_request_that_kills_replicas_meets_three_at_most(
    rig: Rig, replicas: Replicas, client: aiohttp.ClientSession
) -> None:
    for replica in replicas.values():
        replica.dies_on_request = True
    answer = await client.post(f"{rig.url}/infer", json={})
    assert answer.status == 503
    assert (await answer.json())["error"] == "replica failed"
    assert sum(len(replica.seen) for replica in replicas.values()) == 3


async def test_request_id_is_kept_and_internal_headers_are_not(
    rig: Rig, replicas: Replicas, client: aiohttp.ClientSession
) -> None:
    given = {
        "x-request-id": "mine",
        "x-envoy-max-retries": "9",
        "x-envoy-upstream-rq-timeout-ms": "1",
        "x-maserve-namespace": "other",
    }
    answer = await client.post(f"{rig.url}/infer", json={}, headers=given)
    got = next(headers for one in replicas.values() for headers in one.headers)
    assert answer.headers["x-request-id"] == got["x-request-id"] == "mine"
    assert [name for name in got if name.startswith(("x-envoy", "x-maserve"))] == []
    assert [name for name in answer.headers if name.lower().startswith("x-envoy")] == []


async def test_a_stream_that_moves_outlasts_the_limit(
    tmp_path: Path, client: aiohttp.ClientSession
) -> None:
    settings = EnvoySettings(folder=tmp_path / "envoy", idle_timeout_s=0.5)
    async with (
        StubReplica("streams", chunks=15, chunk_every_s=0.1) as replica,
        running_rig(tmp_path, settings) as rig,
    ):
        await serve(rig, {EAST: [replica]}, model="m")
        answer = await client.post(f"{rig.url}/generate_stream", json={})
        assert (answer.status, await answer.text()) == (200, "".join(f"{n};" for n in range(15)))


async def test_request_that_stands_still_for_too_long_is_504_in_json(
    tmp_path: Path, client: aiohttp.ClientSession
) -> None:
    settings = EnvoySettings(folder=tmp_path / "envoy", idle_timeout_s=0.2)
    async with StubReplica("slow", delay_s=2) as slow, running_rig(tmp_path, settings) as rig:
        await serve(rig, {EAST: [slow]}, model="m")
        answer = await client.post(f"{rig.url}/infer", json={})
        assert answer.status == 504
        assert (await answer.json())["error"] == "timeout"
        assert len(slow.seen) == 1
