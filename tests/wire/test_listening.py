"""Where the API server listens, and where it refuses to."""

import socket
from pathlib import Path
from typing import Any

import grpc
import pytest
from prometheus_client import CollectorRegistry

from maserve.apiserver import ApiServer, ApiSettings, Extensions
from maserve.base.clock import SystemClock
from maserve.base.errors import Invalid, NotFound, Unavailable
from maserve.base.keys import Key
from maserve.client import Client, ClientSettings
from maserve.store.sqlite import SqliteStore
from maserve.testing.resources import a_model
from maserve.wire import v2


def a_server(
    store: SqliteStore, address: str, registry: CollectorRegistry | None = None
) -> ApiServer:
    return ApiServer(
        ApiSettings(address=address, stop_s=0.1),
        store,
        inspector=None,  # type: ignore[arg-type]  # not called here
        extensions=Extensions(),
        clock=SystemClock(),
        registry=registry or CollectorRegistry(),
    )


@pytest.mark.parametrize("address", ["127.0.0.1:0", "localhost:0"])
async def test_a_loopback_address_serves(store: SqliteStore, address: str) -> None:
    async with a_server(store, address) as server, Client(server.address) as client:
        assert server.address.startswith(("127.0.0.1:", "[::1]:"))
        assert await client.list(v2.Model) == ()


async def test_a_proxy_of_the_environment_is_not_asked(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "grpc_proxy", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("no_proxy", "no_grpc_proxy"):
        monkeypatch.delenv(name, raising=False)
    async with a_server(store, "127.0.0.1:0") as server, Client(server.address) as client:
        assert await client.list(v2.Model) == ()


@pytest.mark.parametrize(
    ("address", "text"),
    [
        ("0.0.0.0:15566", "must be on this machine"),
        ("[::]:15566", "must be on this machine"),
        ("192.0.2.1:15566", "is 192.0.2.1"),
        ("nowhere.invalid:1", "does not resolve"),
        ("15566", "must be host:port or unix:path"),
        ("127.0.0.1:", "must be host:port or unix:path"),
        ("127.0.0.1:70000", "must be host:port or unix:path"),
        ("127.0.0.1:http", "must be host:port or unix:path"),
        ("unix:/nowhere/at/all.sock", "is in a folder that is not there: /nowhere/at"),
    ],
)
async def test_any_other_address_is_refused(store: SqliteStore, address: str, text: str) -> None:
    with pytest.raises(Invalid, match="api-address") as raised:
        await a_server(store, address).__aenter__()
    assert text in str(raised.value)


async def test_an_occupied_port_is_named(store: SqliteStore) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(Unavailable, match=f"cannot listen on {address}: it is in use"):
            await a_server(store, address).__aenter__()


async def test_two_servers_do_not_share_a_port(store: SqliteStore) -> None:
    async with a_server(store, "127.0.0.1:0") as first:
        with pytest.raises(Unavailable, match="in use"):
            await a_server(store, first.address).__aenter__()


async def test_a_socket_that_answers_is_not_taken_away(store: SqliteStore, tmp_path: Path) -> None:
    address = f"unix:{tmp_path}/api.sock"
    async with a_server(store, address), Client(address) as client:
        with pytest.raises(Unavailable, match="in use"):
            await a_server(store, address).__aenter__()
        assert await client.list(v2.Model) == ()


async def test_a_socket_left_by_a_dead_server_is_reused(store: SqliteStore, tmp_path: Path) -> None:
    path = tmp_path / "api.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    async with a_server(store, f"unix:{path}") as server, Client(server.address) as client:
        assert await client.list(v2.Model) == ()


async def test_nobody_there_says_where_and_what_to_do(tmp_path: Path) -> None:
    address = f"unix:{tmp_path}/nobody.sock"
    async with Client(address) as client:
        with pytest.raises(Unavailable, match=f"is maserve up running at {address}"):
            await client.get(v2.Model, Key("demo", "m1"))


async def test_a_server_that_does_not_answer_is_unavailable(tmp_path: Path) -> None:
    path = tmp_path / "deaf.sock"
    with socket.socket(socket.AF_UNIX) as deaf:
        deaf.bind(str(path))
        deaf.listen()
        settings = ClientSettings(timeout_s=0.2)
        async with Client(f"unix:{path}", settings=settings) as client:
            with pytest.raises(Unavailable):
                await client.get(v2.Model, Key("demo", "m1"))


async def test_calls_are_counted_without_names(store: SqliteStore) -> None:
    registry = CollectorRegistry()
    method = "michelangelo.api.v2.ModelService/GetModel"

    def calls(code: str) -> float | None:
        labels = {"method": method, "code": code}
        return registry.get_sample_value("maserve_api_calls_total", labels)

    async with a_server(store, "127.0.0.1:0", registry) as server:
        assert calls("OK") == 0
        async with Client(server.address) as client:
            await client.create(a_model())
            await client.get(v2.Model, Key("demo", "m1"))
            with pytest.raises(NotFound):
                await client.get(v2.Model, Key("demo", "m2"))
    assert (calls("OK"), calls("NOT_FOUND")) == (1, 1)


async def test_a_running_watch_ends_when_the_server_stops(store: SqliteStore) -> None:
    server = a_server(store, "127.0.0.1:0")
    await server.__aenter__()
    async with grpc.aio.insecure_channel(server.address) as channel:
        call: Any = channel.unary_stream("/maserve.v1.ServingExtService/Watch")
        answers = call(b"\x0a\x05Model")
        await answers.read()
        await server.__aexit__(None, None, None)
        with pytest.raises(grpc.aio.AioRpcError):
            await answers.read()
