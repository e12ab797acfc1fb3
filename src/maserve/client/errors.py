"""From gRPC statuses back to our errors."""

import re

import grpc

from maserve.base.errors import (
    Conflict,
    Denied,
    Error,
    Exists,
    Invalid,
    NotFound,
    Problem,
    Unavailable,
    Unsupported,
)
from maserve.base.keys import Key

_OBJECT_ERRORS: dict[grpc.StatusCode, type[NotFound] | type[Exists] | type[Conflict]] = {
    grpc.StatusCode.NOT_FOUND: NotFound,
    grpc.StatusCode.ALREADY_EXISTS: Exists,
    grpc.StatusCode.FAILED_PRECONDITION: Conflict,
}
_DENIED = (grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.UNAUTHENTICATED)
_SERVERS_OWN = re.compile(r"failed to \w+ API object")
"""How the API server begins what it says itself; all else is said by the way to it."""


class ServerFault(Error):
    """The API server failed at something that is not the caller's fault; its log says more."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(code, text)
        self.code = code
        self.text = text

    def __str__(self) -> str:
        return f"the API server answered {self.code}: {self.text}"


def translate(error: grpc.aio.AioRpcError, *, kind: str, key: Key, address: str) -> Error:
    """Return our error for a failed call about one object; `kind` may be empty."""
    code, text = error.code(), error.details() or ""
    if code in _OBJECT_ERRORS:
        return _OBJECT_ERRORS[code](kind, key)
    if code is grpc.StatusCode.INVALID_ARGUMENT:
        return Invalid(*(Problem("", part) for part in text.split("; ")))
    if code in _DENIED:
        return Denied(text)
    if code is grpc.StatusCode.UNIMPLEMENTED:
        return Unsupported(
            f"{text or 'not served'} (what answers at {address} may be no API server)"
        )
    if code is grpc.StatusCode.UNAVAILABLE and _SERVERS_OWN.match(text):
        return Unavailable(text)
    if code is grpc.StatusCode.UNAVAILABLE:
        return Unavailable(
            f"the API server cannot be reached: is maserve up running at {address}? ({text})"
        )
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return Unavailable(f"the API server at {address} did not answer in time")
    return ServerFault(code.name, text)
