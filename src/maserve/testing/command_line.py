"""Driving the command line in tests: an API server in memory and a gateway that answers as told."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from typer.testing import CliRunner, Result

from maserve.base.errors import Conflict, NotFound, Unavailable
from maserve.base.keys import Key
from maserve.cli.api import Api, Outside
from maserve.cli.app import build_app_over
from maserve.client import Applied, Change, ChangeType
from maserve.host.http import Answer
from maserve.resource import Resource, clone, key_of, kind_of
from maserve.testing.clock import FakeClock
from maserve.wire import ext

Step = Change[Resource] | BaseException
"""What a watch goes on with after the objects that are there: a change, or how it breaks."""


def a_change(type: ChangeType, object: Resource | None) -> Change[Resource]:  # noqa: A002
    """Return a step of a watch."""
    return Change(type=type, object=object, version="1")


@dataclass
class FakeApi:
    """Keeps objects.

    `steps` are what watches tell next, used up in order, after which they wait forever; `on_watch`
    is what happens as each watch begins. `calls` has one text for each write. `refuse` maps an
    object's name to the error its apply raises; `dying` names those that are being deleted.
    """

    objects: dict[tuple[type[Resource], Key], Resource] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    refuse: dict[str, Exception] = field(default_factory=dict)
    dying: set[str] = field(default_factory=set)
    calls: list[str] = field(default_factory=list)
    views: dict[Key, ext.DescribeResponse] = field(default_factory=dict)
    on_watch: list[Callable[[], None]] = field(default_factory=list)
    lines: list[ext.LogsResponse] = field(default_factory=list)
    log_requests: list[ext.LogsRequest] = field(default_factory=list)

    def put(self, *resources: Resource) -> None:
        """Make objects exist."""
        for resource in resources:
            self.objects[type(resource), key_of(resource)] = clone(resource)

    async def get(self, kind: type[Resource], key: Key) -> Resource:
        found = self.objects.get((kind, key))
        if found is None:
            raise NotFound(kind.DESCRIPTOR.name, key)
        return clone(found)

    async def list(self, kind: type[Resource], namespace: str) -> tuple[Resource, ...]:
        return self._there(kind, Key(namespace, ""))

    async def apply(self, resource: Resource, *, dry_run: bool) -> tuple[Resource, Applied]:
        name = resource.metadata.name
        if name in self.refuse:
            raise self.refuse[name]
        if name in self.dying:
            resource = clone(resource)
            resource.metadata.deletionTimestamp.seconds = 1
        before = self.objects.get((type(resource), key_of(resource)))
        self.calls.append(f"{'check' if dry_run else 'apply'} {kind_of(resource).name} {name}")
        if not dry_run:
            self.put(resource)
        if before is None:
            return resource, Applied.CREATED
        return resource, Applied.UNCHANGED if before == resource else Applied.UPDATED

    async def delete(self, kind: type[Resource], key: Key, *, uid: str) -> None:
        gone = await self.get(kind, key)
        if uid not in ("", gone.metadata.uid):
            raise Conflict(kind.DESCRIPTOR.name, key)
        self.calls.append(f"delete {kind.DESCRIPTOR.name} {key.name}")
        del self.objects[kind, key]
        self.steps.append(a_change(ChangeType.DELETED, gone))

    async def watch(self, kind: type[Resource], key: Key) -> AsyncIterator[Change[Resource]]:
        if self.on_watch:
            self.on_watch.pop(0)()
        for there in self._there(kind, key):
            yield a_change(ChangeType.ADDED, there)
        yield a_change(ChangeType.SYNCED, None)
        while self.steps:
            step = self.steps.pop(0)
            if isinstance(step, BaseException):
                raise step
            yield step
        await asyncio.Event().wait()

    async def describe(self, kind: type[Resource], key: Key) -> ext.DescribeResponse:
        view = ext.DescribeResponse()
        view.MergeFrom(self.views.get(key, view))
        view.object.Pack(await self.get(kind, key))
        return view

    async def logs(self, request: ext.LogsRequest) -> AsyncIterator[ext.LogsResponse]:
        self.log_requests.append(request)
        for line in self.lines:
            yield line

    def _there(self, kind: type[Resource], key: Key) -> tuple[Resource, ...]:
        found = (
            each
            for (each_kind, each_key), each in self.objects.items()
            if each_kind is kind
            and key.namespace in ("", each_key.namespace)
            and key.name in ("", each_key.name)
        )
        return tuple(clone(each) for each in sorted(found, key=key_of))


@dataclass
class FakeGateway:
    """Answers every request with `answer`; None: unreachable. `requests` has URL and body."""

    answer: Answer | None = None
    requests: list[tuple[str, bytes]] = field(default_factory=list)

    async def post(self, url: str, body: bytes) -> Answer:
        self.requests.append((url, body))
        if self.answer is None:
            raise Unavailable(f"POST {url}: connection refused")
        return self.answer


class CommandLine:
    """Runs commands as a shell would, over `api` and `gateway`; the clock stands at its start."""

    def __init__(self) -> None:
        self.api = FakeApi()
        self.gateway = FakeGateway()
        self.addresses: list[str] = []
        self.connect_error: Exception | None = None
        outside = Outside(connect=self.connect, post=self.gateway.post, clock=FakeClock())
        self._app = build_app_over(outside)

    def __call__(
        self, *words: str, stdin: str = "", environment: dict[str, str] | None = None
    ) -> Result:
        """Run `maserve` with `words`."""
        return CliRunner().invoke(self._app, list(words), input=stdin, env=environment)

    @asynccontextmanager
    async def connect(self, address: str) -> AsyncIterator[Api]:
        """Connect as a command does; `addresses` has whom to."""
        self.addresses.append(address)
        if self.connect_error is not None:
            raise self.connect_error
        yield self.api
