"""One gRPC call with our messages, headers, deadline and errors."""

from collections.abc import AsyncIterator
from typing import Any, TypeVar

import grpc
from google.protobuf.message import Message

from maserve.base.keys import Key
from maserve.client.errors import translate

M = TypeVar("M", bound=Message)

# The headers the reference demands of every caller; ours does without them.
_HEADERS = (
    ("rpc-caller", "maserve"),
    ("rpc-service", "ma-apiserver"),
    ("rpc-encoding", "proto"),
)


class Calls:
    """Calls over one channel to `address`."""

    def __init__(self, channel: grpc.aio.Channel, *, address: str, timeout_s: float) -> None:
        self._channel = channel
        self._address = address
        self._timeout_s = timeout_s

    async def unary(
        self, method: str, request: Message, answer: type[M], *, kind: str, key: Key
    ) -> M:
        """Return the answer of a call about one object. Raises the errors of `base.errors`."""
        call: Any = self._channel.unary_unary(
            method,
            request_serializer=_to_bytes,
            response_deserializer=answer.FromString,
        )
        try:
            found: M = await call(request, timeout=self._timeout_s, metadata=_HEADERS)
        except grpc.aio.AioRpcError as error:
            raise translate(error, kind=kind, key=key, address=self._address) from error
        return found

    async def stream(
        self, method: str, request: Message, answer: type[M], *, kind: str, key: Key
    ) -> AsyncIterator[M]:
        """Yield the answers of a call that has no deadline. Raises as `unary`."""
        call: Any = self._channel.unary_stream(
            method,
            request_serializer=_to_bytes,
            response_deserializer=answer.FromString,
        )
        answers = call(request, metadata=_HEADERS)
        try:
            async for found in answers:
                yield found
        except grpc.aio.AioRpcError as error:
            raise translate(error, kind=kind, key=key, address=self._address) from error
        finally:
            answers.cancel()


def _to_bytes(message: Message) -> bytes:
    return message.SerializeToString()
