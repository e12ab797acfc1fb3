"""The typed client against the API server."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import grpc
import pytest

from maserve.base.errors import (
    Conflict,
    Denied,
    Exists,
    Expired,
    Invalid,
    NotFound,
    Unavailable,
    Unsupported,
)
from maserve.base.keys import Key
from maserve.client import Applied, Client, ClientSettings, ServerFault
from maserve.store.sqlite import SqliteStore
from maserve.testing.resources import a_deployment, a_model, a_project
from maserve.wire import v2

KEY = Key("demo", "m1")


async def test_create_get_find_update_delete(client: Client) -> None:
    created = await client.create(a_model())
    assert await client.get(v2.Model, KEY) == created
    created.spec.description = "better"
    updated = await client.update(created)
    assert (await client.find(v2.Model, KEY)) == updated
    await client.delete(v2.Model, KEY, uid=updated.metadata.uid)
    assert await client.find(v2.Model, KEY) is None


async def test_dry_runs_store_nothing(client: Client) -> None:
    await client.create(a_model(), dry_run=True)
    assert await client.find(v2.Model, KEY) is None
    await client.create(a_model())
    await client.delete(v2.Model, KEY, dry_run=True)
    assert await client.find(v2.Model, KEY) is not None


async def test_errors_come_back_as_ours(client: Client) -> None:
    with pytest.raises(NotFound, match="Model demo/m1 not found"):
        await client.get(v2.Model, KEY)
    stored = await client.create(a_model())
    with pytest.raises(Exists, match="Model demo/m1 already exists"):
        await client.create(a_model())
    await client.apply(described("new"))
    with pytest.raises(Conflict):
        await client.update(stored)
    with pytest.raises(Denied):
        await client.create(a_project("default"))
    with pytest.raises(Invalid) as raised:
        await client.create(v2.Project(metadata=a_project("x").metadata))
    assert str(raised.value.problems[0]) == "spec.description cannot be empty"
    assert len(raised.value.problems) == 5


def described(text: str, **labels: str) -> v2.Model:
    model = a_model()
    model.spec.description = text
    model.metadata.labels.update(labels)
    return model


async def test_apply_creates_updates_and_leaves_alone(client: Client) -> None:
    model, outcome = await client.apply(described("one", team="digits"))
    assert outcome is Applied.CREATED
    model.metadata.annotations["seen"] = "yes"
    model.metadata.finalizers.append("example.com/hold")
    await client.update(model)
    model, outcome = await client.apply(described("two", stage="late"))
    assert outcome is Applied.UPDATED
    assert model.spec.description == "two"
    assert {"team", "stage"} <= set(model.metadata.labels)
    assert model.metadata.annotations["seen"] == "yes"
    assert list(model.metadata.finalizers) == ["example.com/hold"]
    _, outcome = await client.apply(described("two"))
    assert outcome is Applied.UNCHANGED


async def test_apply_empties_what_the_manifest_leaves_out(client: Client) -> None:
    await client.apply(described("one"))
    model, _ = await client.apply(a_model())
    assert not model.spec.description


@pytest.mark.parametrize("dry_run", [False, True], ids=["real", "dry run"])
async def test_what_the_server_fills_in_is_no_change(client: Client, dry_run: bool) -> None:
    model = a_model()
    model.spec.model_family.name = "digits"
    await client.create(model)
    wanted = a_deployment(desired="m1")
    await client.apply(wanted)
    stored, outcome = await client.apply(wanted, dry_run=dry_run)
    assert (outcome, stored.spec.model_family.name) == (Applied.UNCHANGED, "digits")
    wanted.spec.desired_revision.name = "m2"
    _, outcome = await client.apply(wanted, dry_run=dry_run)
    assert outcome is Applied.UPDATED


async def test_what_was_read_of_a_deleted_object_can_be_applied(client: Client) -> None:
    old = await client.create(a_model())
    await client.delete(v2.Model, KEY)
    new, outcome = await client.apply(old)
    assert (outcome, new.spec) == (Applied.CREATED, old.spec)
    assert new.metadata.uid != old.metadata.uid


async def test_two_applies_at_once_both_end(client: Client) -> None:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(client.apply(described(str(n)))) for n in range(4)]
    assert [outcome for _, outcome in (task.result() for task in tasks)].count(Applied.CREATED) == 1


async def test_apply_gives_up_after_too_many_races(api_server: Any) -> None:
    settings = ClientSettings(attempts=2)
    async with Client(api_server.address, settings=settings) as client:
        await client.create(a_model())
        racer = RacedClient(client)
        with pytest.raises(Conflict):
            await racer.apply(described("late"))


class RacedClient(Client):
    """Another writer is always a little faster."""

    def __init__(self, other: Client) -> None:
        super().__init__(other._address, settings=other._settings)
        self._calls = other._calls
        self._other = other
        self._round = 0

    async def find(self, kind: Any, key: Key) -> Any:
        found = await super().get(kind, key)
        self._round += 1
        faster = v2.Model.FromString(found.SerializeToString())
        faster.spec.description = f"faster {self._round}"
        await self._other.update(faster)
        return found


def is_described(text: str) -> Callable[[v2.Model | None], bool]:
    return lambda model: model is not None and model.spec.description == text


async def test_wait_until_sees_what_is_there_and_what_comes(client: Client) -> None:
    await client.apply(described("one"))
    assert await client.wait_until(v2.Model, KEY, is_described("one")) is not None
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(client.wait_until(v2.Model, KEY, is_described("two")))
        await asyncio.sleep(0.05)
        await client.apply(described("two"))
    assert waiting.result() is not None


async def test_wait_until_gone(client: Client) -> None:
    await client.apply(described("one"))
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(client.wait_until(v2.Model, KEY, lambda model: model is None))
        await asyncio.sleep(0.05)
        await client.delete(v2.Model, KEY)
    assert waiting.result() is None


async def test_wait_until_without_a_server_says_so(tmp_path: Path) -> None:
    async with Client(f"unix:{tmp_path}/nobody.sock") as client:
        with pytest.raises(Unavailable):
            await client.wait_until(v2.Model, KEY, is_described("x"))


class ScriptedServer:
    """Answers every call of one channel with a status, or a Watch with what is scripted."""

    def __init__(self, code: grpc.StatusCode) -> None:
        self._code = code

    def service(self, details: Any) -> Any:
        if details.method.endswith("Watch"):
            return grpc.unary_stream_rpc_method_handler(self._stream)
        return grpc.unary_unary_rpc_method_handler(self._unary)

    async def _unary(self, body: bytes, context: Any) -> bytes:
        await context.abort(self._code, "because")
        return b""

    async def _stream(self, body: bytes, context: Any) -> AsyncIterator[bytes]:
        await context.abort(self._code, "because")
        yield b""


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (grpc.StatusCode.UNAUTHENTICATED, Denied),
        (grpc.StatusCode.UNIMPLEMENTED, Unsupported),
        (grpc.StatusCode.INTERNAL, ServerFault),
        (grpc.StatusCode.UNAVAILABLE, Unavailable),
        (grpc.StatusCode.DEADLINE_EXCEEDED, Unavailable),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
async def test_statuses_of_any_server_are_translated(
    tmp_path: Path, code: grpc.StatusCode, error: type[Exception]
) -> None:
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((ScriptedServer(code),))  # type: ignore[arg-type]  # duck
    address = f"unix:{tmp_path}/scripted.sock"
    server.add_insecure_port(address)
    await server.start()
    async with Client(address) as client:
        with pytest.raises(error):
            await client.get(v2.Model, KEY)
    await server.stop(0)


async def test_an_address_that_serves_something_else_is_named(tmp_path: Path) -> None:
    server = grpc.aio.server()
    address = f"unix:{tmp_path}/other.sock"
    server.add_insecure_port(address)
    await server.start()
    async with Client(address) as client:
        with pytest.raises(Unsupported, match=f"answers at {address} may be no API server"):
            await client.get(v2.Model, KEY)
    await server.stop(0)


async def test_a_forgotten_version_is_expired(tmp_path: Path) -> None:
    server = grpc.aio.server()
    handlers = ScriptedServer(grpc.StatusCode.NOT_FOUND)
    server.add_generic_rpc_handlers((handlers,))  # type: ignore[arg-type]  # duck
    address = f"unix:{tmp_path}/scripted.sock"
    server.add_insecure_port(address)
    await server.start()
    async with Client(address) as client:
        with pytest.raises(Expired, match="changes of Model since 7 are forgotten"):
            await anext(client.watch(v2.Model, since="7"))
    await server.stop(0)


async def test_the_store_has_what_the_client_wrote(client: Client, store: SqliteStore) -> None:
    created = await client.create(a_model())
    stored = await store.get(v2.Model, KEY)
    assert stored.metadata.resourceVersion == created.metadata.resourceVersion
