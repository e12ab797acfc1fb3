"""Loads over gRPC: the request's bytes, and what answers mean."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest

from maserve.base.errors import Unavailable
from maserve.base.keys import ModelName
from maserve.cmd.engineload import GrpcLoad, render_request
from maserve.modelsync import LoadAnswer
from maserve.testing.loopback import free_port

MODEL = ModelName("digits")

Handle = Callable[[bytes, Any], Awaitable[bytes]]


@asynccontextmanager
async def an_engine(handle: Handle) -> AsyncIterator[str]:
    """Answer loads as Triton does; yields the address."""
    method: Any = grpc.unary_unary_rpc_method_handler(handle)
    server = grpc.aio.server()
    server.add_generic_rpc_handlers(
        (
            grpc.method_handlers_generic_handler(
                "inference.GRPCInferenceService", {"RepositoryModelLoad": method}
            ),
        )
    )
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(0)


async def test_the_model_is_named_and_the_load_accepted() -> None:
    asked: list[bytes] = []

    async def handle(request: bytes, _context: Any) -> bytes:
        asked.append(request)
        return b""

    async with an_engine(handle) as address:
        assert await GrpcLoad(address, timeout_s=5)(MODEL) == LoadAnswer(accepted=True)
    assert asked == [b"\x12\x06digits"]


async def test_a_refusal_keeps_the_engines_words() -> None:
    async def handle(_request: bytes, context: Any) -> bytes:
        await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "load failed for 'digits': boom;")
        return b""

    async with an_engine(handle) as address:
        answer = await GrpcLoad(address, timeout_s=5)(MODEL)
    assert answer == LoadAnswer(accepted=False, text="load failed for 'digits': boom")


async def test_a_refusal_of_many_words_is_heard_whole() -> None:
    words = "missing key; " * 10_000

    async def handle(_request: bytes, context: Any) -> bytes:
        await context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"{words}boom")
        return b""

    async with an_engine(handle) as address:
        answer = await GrpcLoad(address, timeout_s=5)(MODEL)
    assert answer == LoadAnswer(accepted=False, text=f"{words}boom")


async def test_an_engine_that_is_not_there_is_unavailable() -> None:
    address = f"127.0.0.1:{free_port()}"

    with pytest.raises(Unavailable, match=f"load at {address}"):
        await GrpcLoad(address, timeout_s=5)(MODEL)


async def test_a_load_that_takes_too_long_is_unavailable() -> None:
    async def handle(_request: bytes, context: Any) -> bytes:
        await context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, "too long")
        return b""

    async with an_engine(handle) as address:
        with pytest.raises(Unavailable, match="too long"):
            await GrpcLoad(address, timeout_s=5)(MODEL)


@pytest.mark.parametrize(
    ("name", "head"), [("m", b"\x12\x01"), ("x" * 127, b"\x12\x7f"), ("x" * 300, b"\x12\xac\x02")]
)
def test_names_of_any_length_are_written(name: str, head: bytes) -> None:
    assert render_request(ModelName(name)) == head + name.encode()
