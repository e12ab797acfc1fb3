"""An API server over SQLite on a unix socket, and the ways to call it."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.message import Message
from prometheus_client import CollectorRegistry

from maserve.apiserver import ApiServer, ApiSettings, stock_extensions
from maserve.base.clock import SystemClock
from maserve.base.errors import NotFound
from maserve.base.keys import Key
from maserve.client import Client
from maserve.resource import Kind
from maserve.store.sqlite import SqliteStore
from maserve.wire import ext, find_message


class FakeInspector:
    """Describes every object but `missing`, and logs three lines."""

    async def describe(self, kind: Kind, key: Key) -> ext.DescribeResponse:
        if key.name == "missing":
            raise NotFound(kind.name, key)
        return ext.DescribeResponse(events=[ext.Event(reason="Seen", message=str(key))])

    async def logs(self, request: ext.LogsRequest) -> AsyncIterator[ext.LogsResponse]:
        for number in range(3):
            yield ext.LogsResponse(replica=request.replica, line=f"line {number}")


class RawStub:
    """Calls methods by name, as any client of the contract does."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.channel = channel

    async def __call__(self, kind: str, method: str, **fields: Any) -> Any:
        package = "michelangelo.api.v2"
        request = find_message(f"{package}.{method}Request")(**fields)
        return await self.send(
            f"/{package}.{kind}Service/{method}",
            request.SerializeToString(),
            find_message(f"{package}.{method}Response"),
        )

    async def send(self, path: str, body: bytes, answer: type[Message]) -> Any:
        call: Any = self.channel.unary_unary(path, response_deserializer=answer.FromString)
        return await call(body, timeout=5)

    async def refused(self, kind: str, method: str, **fields: Any) -> tuple[str, str]:
        """Return code and text of a call that fails."""
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await self(kind, method, **fields)
        return raised.value.code().name, raised.value.details() or ""


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    async with SqliteStore(tmp_path / "store.db") as opened:
        yield opened


@pytest.fixture
async def api_server(store: SqliteStore, tmp_path: Path) -> AsyncIterator[ApiServer]:
    async with ApiServer(
        ApiSettings(address=f"unix:{tmp_path}/api.sock", stop_s=0.1),
        store,
        inspector=FakeInspector(),
        extensions=stock_extensions(store, environment="unspecified"),
        clock=SystemClock(),
        registry=CollectorRegistry(),
    ) as running:
        yield running


@pytest.fixture
async def channel(api_server: ApiServer) -> AsyncIterator[grpc.aio.Channel]:
    async with grpc.aio.insecure_channel(api_server.address) as opened:
        yield opened


@pytest.fixture
def raw(channel: grpc.aio.Channel) -> RawStub:
    return RawStub(channel)


@pytest.fixture
async def client(api_server: ApiServer) -> AsyncIterator[Client]:
    async with Client(api_server.address) as opened:
        yield opened
