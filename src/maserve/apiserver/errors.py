"""What an error becomes on the wire: one table of gRPC codes and one shape of texts.

Source: behaviour 1.7 and 17.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import grpc

from maserve.base.errors import (
    Conflict,
    Denied,
    Error,
    Exists,
    Expired,
    Invalid,
    NotFound,
    Unavailable,
    Unsupported,
)
from maserve.base.keys import Key

CODES: dict[type[Error], grpc.StatusCode] = {
    Invalid: grpc.StatusCode.INVALID_ARGUMENT,
    NotFound: grpc.StatusCode.NOT_FOUND,
    Expired: grpc.StatusCode.NOT_FOUND,
    Exists: grpc.StatusCode.ALREADY_EXISTS,
    Conflict: grpc.StatusCode.FAILED_PRECONDITION,
    Denied: grpc.StatusCode.PERMISSION_DENIED,
    Unsupported: grpc.StatusCode.UNIMPLEMENTED,
    Unavailable: grpc.StatusCode.UNAVAILABLE,
}

INTERNAL_TEXT = "internal error; the API server's log has the details"


class Failed(Error):
    """A storage call failed; its sentence says which call on what."""

    def __init__(self, verb: str, key: Key, cause: Error) -> None:
        super().__init__(verb, key, cause)
        self.verb = verb
        self.key = key
        self.cause = cause

    def __str__(self) -> str:
        return (
            f"failed to {self.verb} API object. namespace: {self.key.namespace}, "
            f"name: {self.key.name}: {self.cause}"
        )


@contextmanager
def storage(verb: str, key: Key) -> Iterator[None]:
    """Name the call in every error of the storage; errors of rules and hooks stay bare."""
    try:
        yield
    except Error as error:
        raise Failed(verb, key, error) from error


def status_of(error: Error) -> tuple[grpc.StatusCode, str]:
    """Return code and text; INTERNAL without details for an error that is not for callers."""
    cause = error.cause if isinstance(error, Failed) else error
    code = CODES.get(type(cause))
    return (code, str(error)) if code else (grpc.StatusCode.INTERNAL, INTERNAL_TEXT)
