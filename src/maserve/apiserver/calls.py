"""From bytes to handlers and back: parses, runs, and turns every error into a status."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import grpc
import structlog
from google.protobuf.message import Message

from maserve.apiserver.errors import INTERNAL_TEXT, status_of
from maserve.apiserver.metrics import ApiMetrics
from maserve.apiserver.requests import decode_request
from maserve.base.clock import Clock
from maserve.base.errors import Error

Q = TypeVar("Q", bound=Message)

Context = grpc.aio.ServicerContext[bytes, bytes]

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """Makes gRPC method handlers of plain async functions over messages."""

    clock: Clock
    metrics: ApiMetrics

    def unary(
        self, method: str, request: type[Q], run: Callable[[Q], Awaitable[Message]]
    ) -> "grpc.RpcMethodHandler[bytes, bytes]":
        """Return the handler of a method with one answer."""

        async def serve(body: bytes, context: Context) -> bytes:
            began_s = self.clock.monotonic()
            code, text, answer = grpc.StatusCode.OK, "", b""
            try:
                answer = (await run(decode_request(request, body))).SerializeToString()
            except Exception as error:  # noqa: BLE001 - the one place that answers for bugs
                code, text = _status(method, error)
            duration_s = self.clock.monotonic() - began_s
            self.metrics.finished(method, code, duration_s=duration_s)
            if code is not grpc.StatusCode.OK:
                await context.abort(code, text)
            return answer

        return grpc.unary_unary_rpc_method_handler(serve)

    def stream(
        self, method: str, request: type[Q], run: Callable[[Q], AsyncIterator[Message]]
    ) -> "grpc.RpcMethodHandler[bytes, bytes]":
        """Return the handler of a method with a stream of answers."""

        async def serve(body: bytes, context: Context) -> AsyncIterator[bytes]:
            code, text = grpc.StatusCode.OK, ""
            try:
                async for answer in run(decode_request(request, body)):
                    yield answer.SerializeToString()
            except Exception as error:  # noqa: BLE001 - the one place that answers for bugs
                code, text = _status(method, error)
            self.metrics.finished(method, code, duration_s=None)
            if code is not grpc.StatusCode.OK:
                await context.abort(code, text)

        return grpc.unary_stream_rpc_method_handler(serve)


def _status(method: str, error: Exception) -> tuple[grpc.StatusCode, str]:
    """Return what the caller is told; what it is not told goes to the log, once."""
    if isinstance(error, Error):
        code, text = status_of(error)
        if code is not grpc.StatusCode.INTERNAL:
            return code, text
    _log.error("call failed", method=method, error=repr(error), exc_info=error)
    return grpc.StatusCode.INTERNAL, INTERNAL_TEXT


def answer_of(message: type[Message], fields: dict[str, Message]) -> Message:
    """Return a message with the given message fields set, empty ones too."""
    answer: Any = message()
    for name, value in fields.items():
        field = getattr(answer, name)
        field.SetInParent()
        field.MergeFrom(value)
    made: Message = answer
    return made
