"""Health, reflection, and our own service: Watch, Describe, Logs."""

import asyncio
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2

from maserve.base.errors import Invalid, NotFound
from maserve.base.keys import Key
from maserve.client import ChangeType, Client
from maserve.resource import KINDS
from maserve.store.sqlite import SqliteStore
from maserve.testing.resources import a_model
from maserve.wire import ext, v2

Request = reflection_pb2.ServerReflectionRequest
BOTH = pytest.mark.parametrize("version", ["v1", "v1alpha"])


async def reflect(channel: grpc.aio.Channel, version: str, *requests: Any) -> list[Any]:
    call: Any = channel.stream_stream(
        f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo",
        request_serializer=Request.SerializeToString,
        response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
    )
    return [answer async for answer in call(iter(requests))]


def files(answer: Any) -> dict[str, FileDescriptorProto]:
    found = answer.file_descriptor_response.file_descriptor_proto
    protos = [FileDescriptorProto.FromString(data) for data in found]
    return {proto.name: proto for proto in protos}


@BOTH
async def test_reflection_lists_every_service(channel: grpc.aio.Channel, version: str) -> None:
    answer = (await reflect(channel, version, Request(list_services="")))[0]
    names = {service.name for service in answer.list_services_response.service}
    assert names == {kind.service for kind in KINDS} | {
        "maserve.v1.ServingExtService",
        "grpc.health.v1.Health",
        "grpc.reflection.v1.ServerReflection",
        "grpc.reflection.v1alpha.ServerReflection",
    }


@BOTH
async def test_reflection_gives_a_file_with_all_it_needs(
    channel: grpc.aio.Channel, version: str
) -> None:
    symbol = "michelangelo.api.v2.DeploymentService"
    answer = (await reflect(channel, version, Request(file_containing_symbol=symbol)))[0]
    found = files(answer)
    assert "michelangelo/api/v2/deployment_svc.proto" in found
    assert {name for file in found.values() for name in file.dependency} <= set(found)


@BOTH
@pytest.mark.parametrize(
    "symbol",
    [
        "grpc.health.v1.Health",
        "grpc.reflection.v1.ServerReflection",
        "grpc.reflection.v1alpha.ServerReflection",
        "maserve.v1.ServingExtService",
    ],
)
async def test_every_listed_service_can_be_looked_up(
    channel: grpc.aio.Channel, version: str, symbol: str
) -> None:
    answer = (await reflect(channel, version, Request(file_containing_symbol=symbol)))[0]
    services = [
        f"{file.package}.{service.name}"
        for file in files(answer).values()
        for service in file.service
    ]
    assert symbol in services


@pytest.mark.parametrize("service", ["", "michelangelo.api.v2.DeploymentService"])
async def test_health_is_serving(channel: grpc.aio.Channel, service: str) -> None:
    stub: Any = health_pb2_grpc.HealthStub(channel)
    answer = await stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=5)
    assert answer.status == health_pb2.HealthCheckResponse.SERVING


async def test_a_watch_shows_what_is_there_and_what_happens(client: Client) -> None:
    await client.create(a_model("m1"))
    seen = client.watch(v2.Model)
    first, synced = await anext(seen), await anext(seen)
    assert (first.type, synced.type) == (ChangeType.ADDED, ChangeType.SYNCED)
    assert first.object is not None
    assert first.object.metadata.name == "m1"
    assert synced.object is None
    await client.delete(v2.Model, Key("demo", "m1"))
    assert (await anext(seen)).type is ChangeType.DELETED
    await client.create(a_model("m2"))
    last = await anext(seen)
    await seen.aclose()  # type: ignore[attr-defined]  # it is a generator
    again = client.watch(v2.Model, since=synced.version)
    changes = [await anext(again), await anext(again)]
    assert changes[-1].version == last.version
    await again.aclose()  # type: ignore[attr-defined]


async def test_a_watch_of_one_object_shows_that_one(client: Client) -> None:
    await client.create(a_model("m1"))
    await client.create(a_model("m2"))
    await client.create(a_model("m2", namespace="other"))
    seen = client.watch(v2.Model, Key("demo", "m2"))
    first, synced = await anext(seen), await anext(seen)
    await seen.aclose()  # type: ignore[attr-defined]
    assert first.object is not None
    assert first.object.metadata.name == "m2"
    assert synced.type is ChangeType.SYNCED


async def test_a_watch_from_an_impossible_version_is_refused(client: Client) -> None:
    with pytest.raises(Invalid):
        await anext(client.watch(v2.Model, since="x"))


async def test_a_watch_of_an_unknown_kind_is_refused(channel: grpc.aio.Channel) -> None:
    call: Any = channel.unary_stream("/maserve.v1.ServingExtService/Watch")
    with pytest.raises(grpc.aio.AioRpcError, match="unknown kind 'Pod'") as raised:
        await anext(aiter(call(ext.WatchRequest(kind="Pod").SerializeToString())))
    assert raised.value.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_a_watcher_that_leaves_takes_nothing_with_it(
    client: Client, store: SqliteStore
) -> None:
    seen = client.watch(v2.Model)
    await anext(seen)
    await seen.aclose()  # type: ignore[attr-defined]
    created = await client.create(a_model())
    assert (await store.get(v2.Model, Key("demo", "m1"))).metadata.uid == created.metadata.uid


async def test_describe_asks_the_inspector(client: Client) -> None:
    answer = await client.describe(v2.Deployment, Key("demo", "d1"))
    assert answer.events[0].message == "demo/d1"
    with pytest.raises(NotFound, match="Deployment demo/missing not found"):
        await client.describe(v2.Deployment, Key("demo", "missing"))


async def test_logs_come_line_by_line(client: Client) -> None:
    request = ext.LogsRequest(namespace="demo", inference_server="is1", replica="r0")
    lines = [answer.line async for answer in client.logs(request)]
    assert lines == ["line 0", "line 1", "line 2"]


async def test_logs_of_nobody_are_refused(client: Client) -> None:
    with pytest.raises(Invalid, match="namespace cannot be empty"):
        await anext(client.logs(ext.LogsRequest()))


async def test_a_call_that_nobody_waits_for_leaves_all_or_nothing(
    channel: grpc.aio.Channel, store: SqliteStore
) -> None:
    call: Any = channel.unary_unary("/michelangelo.api.v2.ModelService/CreateModel")
    body = v2.CreateModelRequest(model=a_model()).SerializeToString()
    started = call(body, timeout=5)
    await asyncio.sleep(0.001)
    started.cancel()
    found = await store.find(v2.Model, Key("demo", "m1"))
    assert found is None or found.metadata.uid
