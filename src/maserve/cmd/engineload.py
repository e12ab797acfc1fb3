"""Loads a model through a Triton's gRPC door (`inference.GRPCInferenceService`, fields 1 and 2).

Over HTTP a load holds one of Triton's few HTTP threads for as long as it takes, and with it every
connection that thread serves: requests of clients for other models would hang. Its gRPC server has
a thread of its own for such calls.
"""

import grpc

from maserve.base.errors import Unavailable
from maserve.base.keys import ModelName
from maserve.modelsync import LoadAnswer

_METHOD = "/inference.GRPCInferenceService/RepositoryModelLoad"
_MODEL_NAME = b"\x12"
_NO_ANSWER = (
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.CANCELLED,
)
_OPTIONS = (
    ("grpc.enable_http_proxy", 0),
    ("grpc.use_local_subchannel_pool", 1),
    # Why a load failed comes as metadata, and some say it at length.
    ("grpc.max_metadata_size", 16 << 20),
    ("grpc.absolute_max_metadata_size", 16 << 20),
)


class GrpcLoad:
    """Calls `address` (host:port); one load may take `timeout_s`."""

    def __init__(self, address: str, *, timeout_s: float) -> None:
        self._address = address
        self._timeout_s = timeout_s

    async def __call__(self, model: ModelName) -> LoadAnswer:
        """See `Engine.load`. A connection each: loads are rare, and engines come and go."""
        async with grpc.aio.insecure_channel(self._address, options=_OPTIONS) as channel:
            call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(_METHOD)
            try:
                await call(render_request(model), timeout=self._timeout_s)
            except grpc.aio.AioRpcError as error:
                return self._refused(error)
        return LoadAnswer(accepted=True)

    def _refused(self, error: grpc.aio.AioRpcError) -> LoadAnswer:
        text = (error.details() or error.code().name).strip().removesuffix(";")
        if error.code() in _NO_ANSWER:
            raise Unavailable(f"load at {self._address}: {text}") from error
        return LoadAnswer(accepted=False, text=text)


def render_request(model: ModelName) -> bytes:
    """Return a `RepositoryModelLoadRequest` that has only the model's name."""
    name = model.encode()
    return _MODEL_NAME + _varint(len(name)) + name


def _varint(number: int) -> bytes:
    low, rest = number & 0x7F, number >> 7
    return bytes([low | 0x80]) + _varint(rest) if rest else bytes([low])
