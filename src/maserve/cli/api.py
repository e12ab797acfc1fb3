"""What the commands need from outside: the API server, the gateway, time."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from maserve.base.clock import Clock
from maserve.base.keys import Key
from maserve.client import Applied, Change
from maserve.host.http import Answer
from maserve.resource import Resource
from maserve.wire import ext

DEFAULT_API_ADDRESS = "127.0.0.1:15566"
DEFAULT_GATEWAY_ADDRESS = "127.0.0.1:8880"


class Api(Protocol):
    """The API server as the commands use it. Raises the errors of `base.errors`."""

    async def get(self, kind: type[Resource], key: Key) -> Resource:
        """Return one object. Raises `NotFound`."""
        ...

    async def list(self, kind: type[Resource], namespace: str) -> tuple[Resource, ...]:
        """Return objects by namespace and name; an empty namespace means all."""
        ...

    async def apply(self, resource: Resource, *, dry_run: bool) -> tuple[Resource, Applied]:
        """Create the object or bring its metadata and spec to what `resource` says."""
        ...

    async def delete(self, kind: type[Resource], key: Key, *, uid: str) -> None:
        """Ask for the deletion of that very object. Raises `NotFound`."""
        ...

    def watch(self, kind: type[Resource], key: Key) -> AsyncIterator[Change[Resource]]:
        """Yield the objects of that namespace and name (empty: all), SYNCED, then changes."""
        ...

    async def describe(self, kind: type[Resource], key: Key) -> ext.DescribeResponse:
        """Return an object and what it looks like in its clusters. Raises `NotFound`."""
        ...

    def logs(self, request: ext.LogsRequest) -> AsyncIterator[ext.LogsResponse]:
        """Yield log lines; ends after the last one unless the request follows them."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """Everything a command reaches. `connect` is given the API server's address."""

    connect: Callable[[str], AbstractAsyncContextManager[Api]]
    post: Callable[[str, bytes], Awaitable[Answer]]
    clock: Clock
