"""No spelling of a path reaches anything but inference: raw bytes to both tiers of a real Envoy."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from maserve.testing.envoy_rig import (
    DEPLOYMENT,
    EAST,
    SERVER,
    Rig,
    StubReplica,
    running_rig,
    serve,
)

# The start of a real Envoy.
pytestmark = [pytest.mark.real, pytest.mark.timeout(20)]

BASE = f"/{SERVER}/{DEPLOYMENT}"

PASSING = [
    ("GET", "", "/v2/models/m"),
    ("GET", "?a=b", "/v2/models/m?a=b"),
    ("GET", "/ready", "/v2/models/m/ready"),
    ("POST", "/infer", "/v2/models/m/infer"),
    ("POST", "/infer?x=/v2/repository/index", "/v2/models/m/infer?x=/v2/repository/index"),
    ("POST", "/generate", "/v2/models/m/generate"),
    ("POST", "/generate_stream", "/v2/models/m/generate_stream"),
    ("GET", "/versions/3", "/v2/models/m/versions/3"),
    ("GET", "/versions/3/ready", "/v2/models/m/versions/3/ready"),
    ("POST", "/versions/12/infer", "/v2/models/m/versions/12/infer"),
    # The protocol's own paths, for clients that take the deployment for their server.
    ("GET", "/v2", "/v2"),
    ("HEAD", "/v2/health/live", "/v2/health/live"),
    ("GET", "/v2/health/ready", "/v2/health/ready"),
    ("GET", f"/v2/models/{DEPLOYMENT}", "/v2/models/m"),
    ("GET", "/v2/models/m/ready", "/v2/models/m/ready"),
    ("GET", "/v2/models/m/config", "/v2/models/m/config"),
    ("GET", "/v2/models/m/versions/1/stats", "/v2/models/m/versions/1/stats"),
    ("POST", f"/v2/models/{DEPLOYMENT}/infer", "/v2/models/m/infer"),
    ("POST", "/v2/models/m/versions/1/infer", "/v2/models/m/versions/1/infer"),
    ("POST", "/v2/models/m/generate_stream", "/v2/models/m/generate_stream"),
    # Harmless spellings of the same path, which arrive in the plain one.
    ("POST", "//infer", "/v2/models/m/infer"),
    ("POST", "/x/../infer", "/v2/models/m/infer"),
    ("POST", "/x/%2e%2e/infer", "/v2/models/m/infer"),
    ("POST", "/%69nfer", "/v2/models/m/infer"),
]

BLOCKED = [
    # Other methods, other APIs of the same model.
    ("POST", ""),
    ("PUT", "/infer"),
    ("DELETE", "/infer"),
    ("GET", "/infer"),
    ("POST", "/ready"),
    ("GET", "/config"),
    ("GET", "/stats"),
    ("GET", "/trace/setting"),
    ("POST", "/trace/setting"),
    ("POST", "/load"),
    ("POST", "/unload"),
    ("POST", "/infer/"),
    ("POST", "/infer/x"),
    ("POST", "/inferx"),
    ("POST", "/INFER"),
    ("POST", "/versions/infer"),
    ("POST", "/versions/x/infer"),
    ("POST", "/versions/1/../../unload"),
    # Other interfaces of the protocol, another model.
    ("GET", "/v2/"),
    ("POST", "/v2"),
    ("GET", "/v2/models"),
    ("GET", "/v2/models/other"),
    ("POST", "/v2/models/other/infer"),
    ("POST", "/v2/models/m/load"),
    ("POST", "/v2/models/m/../../repository/index"),
    ("POST", "/v2/repository/index"),
    ("POST", "/v2/repository/models/m/unload"),
    ("GET", "/v2/systemsharedmemory/status"),
    ("POST", "/v2/cudasharedmemory/region/r/register"),
    ("GET", "/v2/logging"),
    ("POST", "/v2/logging"),
    ("GET", "/v2/trace/setting"),
    ("POST", "/v2/models/m/trace/setting"),
    # Up and out of the model.
    ("POST", "/../../v2/repository/index"),
    ("POST", "/../../../v2/repository/models/m/unload"),
    ("POST", "/%2e%2e/%2e%2e/v2/repository/index"),
    ("POST", "/%2E%2E/%2E%2E/v2/repository/index"),
    ("POST", "/.%2e/.%2e/v2/repository/index"),
    ("POST", "/..%2f..%2fv2/repository/index"),
    ("POST", "/..%2F..%2Fv2/repository/index"),
    ("POST", "/..%5c..%5cv2/repository/index"),
    ("POST", "/..\\..\\v2\\repository\\index"),
    ("POST", "/%252e%252e/%252e%252e/v2/repository/index"),
    ("POST", "/..;/..;/v2/repository/index"),
    ("POST", "/infer;/../../../repository/index"),
    ("POST", "/;/infer"),
    ("POST", "/infer;x=1"),
    ("POST", "/.../infer"),
    ("POST", "/infer%00"),
    ("POST", "/infer%0a"),
    ("POST", "/infer%20"),
    ("POST", "/infer."),
    ("POST", "/infer.."),
    ("POST", "/infer#/../../v2/repository/index"),
    ("POST", "/infer/..//../../repository/index"),
    ("POST", "/%c0%ae%c0%ae/v2/repository/index"),
    ("POST", "/..%u2215v2/repository/index"),
]

ELSEWHERE = [
    ("POST", "/v2/repository/index"),
    ("GET", "/v2/systemsharedmemory/status"),
    ("POST", "/v2/logging"),
    ("GET", "/v2/trace/setting"),
    ("GET", "/v2"),
    ("GET", "/v2/health/ready"),
    ("GET", "/metrics"),
    ("GET", "/"),
    ("GET", f"/cluster/{SERVER}"),
    ("POST", f"/cluster{BASE}/infer"),
    ("POST", f"/{SERVER}"),
    ("GET", f"/{SERVER}/"),
    ("GET", f"/{SERVER}/v2"),
    ("POST", f"/{SERVER}/repository/index"),
    ("POST", f"/{SERVER}/../v2/repository/index"),
    ("POST", f"//{SERVER}/../v2/repository/index"),
    ("POST", f"http://gateway{BASE}/../../v2/repository/index"),
    ("POST", "http://gateway/v2/repository/index"),
    ("OPTIONS", "*"),
    ("CONNECT", "127.0.0.1:8000"),
    ("TRACE", BASE),
]


@pytest.fixture
async def replica() -> AsyncIterator[StubReplica]:
    async with StubReplica("only") as made:
        yield made


@pytest.fixture
async def rig(tmp_path: Path, replica: StubReplica) -> AsyncIterator[Rig]:
    async with running_rig(tmp_path) as made:
        await serve(made, {EAST: [replica]}, model="m")
        yield made


async def ask(address: tuple[str, int], method: str, target: str, headers: str = "") -> int:
    """Send one request with exactly this target and return the status of the answer."""
    reader, writer = await asyncio.open_connection(*address)
    head = f"{method} {target} HTTP/1.1\r\nHost: gateway\r\nContent-Length: 0\r\n{headers}"
    writer.write(f"{head}\r\n".encode("latin-1"))
    async with asyncio.timeout(2):
        status_line = await reader.readline()
    writer.transport.abort()
    return int(status_line.split()[1])


async def test_inference_paths_arrive_at_the_model(rig: Rig, replica: StubReplica) -> None:
    gateway = rig.plane.gateway_address
    statuses = [await ask(gateway, method, f"{BASE}{rest}") for method, rest, _ in PASSING]
    assert statuses == [200] * len(PASSING)
    # Triton refuses HEAD, so the gateway asks it for a GET.
    asked = [("GET" if method == "HEAD" else method, path) for method, _, path in PASSING]
    assert replica.seen == asked


async def test_absolute_form_arrives_like_any_other(rig: Rig, replica: StubReplica) -> None:
    status = await ask(rig.plane.gateway_address, "POST", f"http://gateway{BASE}/infer")
    assert (status, replica.seen) == (200, [("POST", "/v2/models/m/infer")])


async def test_nothing_else_below_a_deployment_arrives(rig: Rig, replica: StubReplica) -> None:
    gateway = rig.plane.gateway_address
    statuses = {
        (method, rest): await ask(gateway, method, f"{BASE}{rest}") for method, rest in BLOCKED
    }
    wrong = {request: status for request, status in statuses.items() if status not in (400, 404)}
    assert (wrong, replica.seen) == ({}, [])


async def test_nothing_elsewhere_arrives(rig: Rig, replica: StubReplica) -> None:
    gateway = rig.plane.gateway_address
    statuses = {request: await ask(gateway, *request) for request in ELSEWHERE}
    wrong = {request: status for request, status in statuses.items() if 200 <= status < 400}
    assert (wrong, replica.seen) == ({}, [])


async def test_cluster_listener_lets_through_no_more_than_the_gateway(
    rig: Rig, replica: StubReplica
) -> None:
    east = await rig.plane.ensure_cluster_listener(EAST)
    targets = [(method, f"/cluster{BASE}{rest}") for method, rest in BLOCKED]
    statuses = {request: await ask(east, *request) for request in [*targets, *ELSEWHERE[:8]]}
    wrong = {request: status for request, status in statuses.items() if status not in (400, 404)}
    assert (wrong, replica.seen) == ({}, [])


async def test_upgrades_are_refused(rig: Rig, replica: StubReplica) -> None:
    upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\n"
    status = await ask(rig.plane.gateway_address, "GET", BASE, upgrade)
    assert (status, replica.seen) == (403, [])


async def test_override_headers_of_clients_change_nothing(rig: Rig, replica: StubReplica) -> None:
    path = "/v2/repository/index"
    headers = f"x-envoy-original-path: {path}\r\nx-rewrite-url: {path}\r\n"
    status = await ask(rig.plane.gateway_address, "POST", f"{BASE}/infer", headers)
    assert (status, replica.seen) == (200, [("POST", "/v2/models/m/infer")])
