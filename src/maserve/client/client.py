"""The typed client of the API server."""

from collections.abc import AsyncIterator, Callable
from types import TracebackType
from typing import Any, Self, TypeVar

import grpc
from google.protobuf.message import Message

from maserve.base.clock import Clock, SystemClock
from maserve.base.errors import Conflict, Exists, Expired, NotFound, Unavailable
from maserve.base.keys import Key
from maserve.client.apply import fresh, is_same, merged
from maserve.client.calls import Calls
from maserve.client.types import Applied, Change, ChangeType, ClientSettings
from maserve.resource import Kind, R, clone, decode, get_kind, key_of, kind_of
from maserve.wire import api, ext, find_message, meta

M = TypeVar("M", bound=Message)

_EXT = "/maserve.v1.ServingExtService"
_DRY_RUN = "All"

_CHANGES = {
    ext.WatchResponse.TYPE_ADDED: ChangeType.ADDED,
    ext.WatchResponse.TYPE_MODIFIED: ChangeType.MODIFIED,
    ext.WatchResponse.TYPE_DELETED: ChangeType.DELETED,
    ext.WatchResponse.TYPE_SYNCED: ChangeType.SYNCED,
}


class Client:
    """Calls an API server at `host:port` or `unix:path`, between `async with`.

    Every method raises the errors of `base.errors`; `Unavailable` says where nobody answered.
    """

    def __init__(
        self, address: str, *, settings: ClientSettings | None = None, clock: Clock | None = None
    ) -> None:
        self._address = address
        self._settings = settings or ClientSettings()
        self._clock = clock or SystemClock()

    async def __aenter__(self) -> Self:
        options = [
            # Without limits: a list of many objects is one message.
            ("grpc.max_receive_message_length", -1),
            ("grpc.max_send_message_length", -1),
            # What http_proxy names does not know this machine's own addresses.
            ("grpc.enable_http_proxy", 0),
        ]
        self._channel = grpc.aio.insecure_channel(self._address, options=options)
        self._calls = Calls(
            self._channel, address=self._address, timeout_s=self._settings.timeout_s
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._channel.close()

    async def create(self, resource: R, *, dry_run: bool = False) -> R:
        """Store a new object and return it as stored. Raises `Exists`, `Invalid`."""
        return await self._write("Create", resource, dry_run=dry_run)

    async def update(self, resource: R, *, dry_run: bool = False) -> R:
        """Replace metadata and spec. Raises `Conflict`, `NotFound`, `Invalid`."""
        return await self._write("Update", resource, dry_run=dry_run)

    async def get(self, kind: type[R], key: Key) -> R:
        """Return one object. Raises `NotFound`."""
        answer = await self._call("Get", kind, key, {"namespace": key.namespace, "name": key.name})
        found: R = getattr(answer, _kind(kind).field)
        return clone(found)

    async def find(self, kind: type[R], key: Key) -> R | None:
        """Return one object, None if there is none."""
        try:
            return await self.get(kind, key)
        except NotFound:
            return None

    async def list(
        self,
        kind: type[R],
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        options: api.ListOptionsExt | None = None,
    ) -> tuple[R, ...]:
        """Return objects by namespace and name, or in the order that `options` say.

        An empty namespace means all; selectors are in Kubernetes syntax.
        """
        selection = meta.ListOptions(labelSelector=labels, fieldSelector=fields)
        request: dict[str, Any] = {"namespace": namespace, "list_options": selection}
        if options is not None:
            request["list_options_ext"] = options
        answer = await self._call("List", kind, Key(namespace, ""), request)
        found = getattr(answer, _kind(kind).list_field)
        return tuple(clone(item) for item in found.items)

    async def delete(
        self, kind: type[R], key: Key, *, uid: str = "", dry_run: bool = False
    ) -> None:
        """Ask for the deletion; with `uid` of that very object only. Raises `NotFound`."""
        options = meta.DeleteOptions(dryRun=[_DRY_RUN] if dry_run else [])
        if uid:
            options.preconditions.uid = uid
        request = {"namespace": key.namespace, "name": key.name, "delete_options": options}
        await self._call("Delete", kind, key, request)

    async def apply(self, resource: R, *, dry_run: bool = False) -> tuple[R, Applied]:
        """Create the object, or bring its spec to what `resource` says (`apply.merged`).

        Races with other writers are run again. Raises `Invalid`, `Conflict` after too many races.
        """
        for _ in range(self._settings.attempts - 1):
            try:
                return await self._apply_once(resource, dry_run=dry_run)
            except (Conflict, Exists, NotFound):
                continue
        return await self._apply_once(resource, dry_run=dry_run)

    async def watch(
        self, kind: type[R], key: Key | None = None, *, since: str = ""
    ) -> AsyncIterator[Change[R]]:
        """Yield the objects of a namespace and name (empty: all), SYNCED, then changes.

        With `since` only the changes after that version; `Expired` if they are forgotten.
        """
        wanted = key or Key("", "")
        request = ext.WatchRequest(
            kind=_kind(kind).name,
            namespace=wanted.namespace,
            name=wanted.name,
            resource_version=since,
        )
        answers = self._calls.stream(
            f"{_EXT}/Watch", request, ext.WatchResponse, kind=request.kind, key=wanted
        )
        try:
            async for answer in answers:
                yield _change(kind, answer)
        except NotFound as error:
            text = f"changes of {request.kind} since {since or 'the last one seen'} are forgotten"
            raise Expired(text) from error

    async def wait_until(
        self,
        kind: type[R],
        key: Key,
        is_met: Callable[[R | None], bool],
    ) -> R | None:
        """Return the object, None for its absence, once `is_met` says so of it.

        Waits as long as it takes, through restarts of the API server; bound it with
        `asyncio.timeout`. Raises `Unavailable` only if the server is not there at the start.
        """
        was_reached = False
        while True:
            try:
                async for found in self._states(kind, key):
                    was_reached = True
                    if is_met(found):
                        return found
            except (Expired, Unavailable):
                if not was_reached:
                    raise
            await self._clock.sleep(1.0)

    async def describe(self, kind: type[R], key: Key) -> ext.DescribeResponse:
        """Return an object and what it looks like in its clusters. Raises `NotFound`."""
        name = _kind(kind).name
        request = ext.DescribeRequest(kind=name, namespace=key.namespace, name=key.name)
        return await self._calls.unary(
            f"{_EXT}/Describe", request, ext.DescribeResponse, kind=name, key=key
        )

    def logs(self, request: ext.LogsRequest) -> AsyncIterator[ext.LogsResponse]:
        """Yield log lines; ends after the last one unless the request follows them."""
        key = Key(request.namespace, request.inference_server)
        return self._calls.stream(
            f"{_EXT}/Logs", request, ext.LogsResponse, kind="InferenceServer", key=key
        )

    async def _states(self, kind: type[R], key: Key) -> AsyncIterator[R | None]:
        """Yield the object now and after every change, None while there is none."""
        current: R | None = None
        is_synced = False
        async for change in self.watch(kind, key):
            is_synced = is_synced or change.type is ChangeType.SYNCED
            if change.type is ChangeType.DELETED:
                current = None
            elif change.object is not None:
                current = change.object
            if is_synced:
                yield current

    async def _apply_once(self, resource: R, *, dry_run: bool) -> tuple[R, Applied]:
        stored = await self.find(type(resource), key_of(resource))
        if stored is None:
            return await self.create(fresh(resource), dry_run=dry_run), Applied.CREATED
        new = merged(stored, resource)
        if is_same(stored, new):
            return stored, Applied.UNCHANGED
        updated = await self.update(new, dry_run=dry_run)
        # What the server fills in may be all that was missing from the manifest.
        outcome = Applied.UNCHANGED if is_same(stored, updated) else Applied.UPDATED
        return updated, outcome

    async def _write(self, verb: str, resource: R, *, dry_run: bool) -> R:
        field = kind_of(resource).field
        options = {"dryRun": [_DRY_RUN] if dry_run else []}
        request = {field: resource, f"{verb.lower()}_options": options}
        answer = await self._call(verb, type(resource), key_of(resource), request)
        stored: R = getattr(answer, field)
        return clone(stored)

    async def _call(self, verb: str, kind: type[R], key: Key, fields: dict[str, Any]) -> Message:
        found = _kind(kind)
        method = f"{verb}{found.name}"
        package = found.service.rpartition(".")[0]
        request = find_message(f"{package}.{method}Request")(**fields)
        answer = find_message(f"{package}.{method}Response")
        return await self._calls.unary(
            f"/{found.service}/{method}", request, answer, kind=found.name, key=key
        )


def _kind(kind: type[R]) -> Kind:
    return get_kind(kind.DESCRIPTOR.name)


def _change(kind: type[R], answer: ext.WatchResponse) -> Change[R]:
    found = decode(kind, answer.object.value) if answer.HasField("object") else None
    return Change(type=_CHANGES[answer.type], object=found, version=answer.resource_version)
