"""Our own service beside the kinds': changes as they happen, descriptions, logs."""

from collections.abc import AsyncIterator
from typing import Any, Protocol

import grpc

from maserve.apiserver.calls import Calls
from maserve.apiserver.naming import check_key
from maserve.base.keys import Key
from maserve.resource import Kind, Resource, get_kind
from maserve.store import Change, ChangeType, Store
from maserve.wire import ext

EXT_SERVICE = "maserve.v1.ServingExtService"

_TYPES = {
    ChangeType.ADDED: ext.WatchResponse.TYPE_ADDED,
    ChangeType.MODIFIED: ext.WatchResponse.TYPE_MODIFIED,
    ChangeType.DELETED: ext.WatchResponse.TYPE_DELETED,
    ChangeType.SYNCED: ext.WatchResponse.TYPE_SYNCED,
}


class Inspector(Protocol):
    """Looks into clusters and processes on behalf of a caller."""

    async def describe(self, kind: Kind, key: Key) -> ext.DescribeResponse:
        """Return an object with its events, clusters and routes. Raises `NotFound`."""
        ...

    def logs(self, request: ext.LogsRequest) -> AsyncIterator[ext.LogsResponse]:
        """Yield lines, oldest first; ends after the last one unless the request follows them.

        Raises `NotFound` for a server that is not there, `Invalid` for a cluster, replica or
        program that it does not have.
        """
        ...


class ServingExt:
    """The three calls of `ServingExtService`."""

    def __init__(self, store: Store, inspector: Inspector) -> None:
        self._store = store
        self._inspector = inspector

    def handler(self, calls: Calls) -> grpc.GenericRpcHandler:
        """Return the gRPC handler of the service."""
        return grpc.method_handlers_generic_handler(
            EXT_SERVICE,
            {
                "Watch": calls.stream(f"{EXT_SERVICE}/Watch", ext.WatchRequest, self.watch),
                "Describe": calls.unary(
                    f"{EXT_SERVICE}/Describe", ext.DescribeRequest, self.describe
                ),
                "Logs": calls.stream(f"{EXT_SERVICE}/Logs", ext.LogsRequest, self.logs),
            },
        )

    async def watch(self, request: ext.WatchRequest) -> AsyncIterator[ext.WatchResponse]:
        """Yield what happens to the objects of a namespace and name, empty ones meaning all."""
        kind = get_kind(request.kind)
        changes: AsyncIterator[Change[Any]] = self._store.watch(
            kind.message, since=request.resource_version
        )
        async for change in changes:
            if change.object is None or _concerns(request, change.object):
                yield _render(change)

    async def describe(self, request: ext.DescribeRequest) -> ext.DescribeResponse:
        """Return an object and what it looks like in its clusters."""
        key = check_key(request.namespace, request.name)
        return await self._inspector.describe(get_kind(request.kind), key)

    async def logs(self, request: ext.LogsRequest) -> AsyncIterator[ext.LogsResponse]:
        """Yield log lines of an inference server's replicas."""
        check_key(request.namespace, request.inference_server)
        async for line in self._inspector.logs(request):
            yield line


def _concerns(request: ext.WatchRequest, resource: Resource) -> bool:
    metadata = resource.metadata
    return request.namespace in {"", metadata.namespace} and request.name in {"", metadata.name}


def _render(change: Change[Any]) -> ext.WatchResponse:
    answer = ext.WatchResponse(type=_TYPES[change.type], resource_version=change.version)
    if change.object is not None:
        answer.object.Pack(change.object)
    return answer
