"""The data plane of one machine: what it shall serve, and when Envoy does."""

import asyncio
import random
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

import structlog

from maserve.base.clock import Clock
from maserve.base.errors import Error, Unavailable
from maserve.base.keys import ClusterId
from maserve.envoy import state as states
from maserve.envoy.admin import Admin
from maserve.envoy.check import check_addresses, check_name, check_rules
from maserve.envoy.layout import Layout, table_name
from maserve.envoy.process import EnvoyProcess, check_address_free
from maserve.envoy.snapshot import build_snapshot, files, is_shadowed
from maserve.envoy.state import RouteState, State, parse_state, render_state
from maserve.envoy.swap import Rejected, Swapper
from maserve.envoy.types import (
    LOOPBACK,
    Address,
    EnvoySettings,
    RouteRef,
    RouteRule,
    ServiceRef,
)
from maserve.host import HttpClient, Supervisor, Worker, find_bytes, write_atomically

_REPAIR_S = 1.0
_PORT_TRIES = 3

Change = Callable[[State], State]
"""A change of what shall be served. It may be applied more than once, and raises what its caller gets."""

log = structlog.get_logger()


class Ports(Protocol):
    """Loopback ports that survive a restart. Calls block."""

    def allocate(self, owner: str, count: int) -> tuple[int, ...]:
        """Return the owner's ports: the remembered ones, else new ones."""
        ...

    def replace(self, owner: str, count: int) -> tuple[int, ...]:
        """Return new ports instead of the remembered ones."""
        ...

    def release(self, owner: str) -> None:
        """Forget the owner's ports."""
        ...


@dataclass(frozen=True, slots=True)
class _Request:
    change: Change
    done: asyncio.Future[None]


class DataPlane:
    """Owns the configuration and the process of one Envoy. Use as `async with`, and keep `run` running.

    Entering adopts a running Envoy or starts one; leaving lets it run on, `stop` ends it. All changes are
    idempotent and return once Envoy has acknowledged them. They raise `Invalid` for what Envoy could
    never take, `Rejected` (an `Unavailable`) for what it has refused, which is undone, and `Unavailable`
    when it does not answer: the change is kept then, and takes effect once Envoy is back.
    """

    def __init__(
        self,
        settings: EnvoySettings,
        *,
        supervisor: Supervisor,
        ports: Ports,
        clock: Clock,
        rng: random.Random,
        short_root: Path | None = None,
    ) -> None:
        self._settings = settings
        self._layout = Layout(settings.folder)
        self._ports = ports
        self._clock = clock
        self._worker = Worker("envoy-files")
        socket = self._layout.admin_socket(short_root or Path(tempfile.gettempdir()))
        self._http = HttpClient(socket=socket)
        admin = Admin(self._http)
        self.process = EnvoyProcess(
            settings,
            admin_socket=socket,
            supervisor=supervisor,
            admin=admin,
            clock=clock,
            rng=rng,
        )
        self._swapper = Swapper(
            self._layout,
            admin=admin,
            process=self.process,
            worker=self._worker,
            clock=clock,
            timeout_s=settings.acknowledge_timeout_s,
        )
        self._state = State()
        self._versions: Mapping[str, str] = {}
        self._requests: list[_Request] = []
        self._wake = asyncio.Event()
        self._unsettled = asyncio.Event()
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            stack.callback(self._worker.close)
            await stack.enter_async_context(self._http)
            await self._open()
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._stack.aclose()

    @property
    def gateway_address(self) -> tuple[str, int]:
        """Return where clients send their requests."""
        return self._settings.gateway.host, self._settings.gateway.port

    async def run(self) -> None:
        """Serve changes and keep Envoy running, until cancelled. Envoy itself runs on."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self.process.run())
                group.create_task(self._serve_changes())
                group.create_task(self._repair())
        finally:
            self._fail_all(Unavailable("the data plane's control has ended"))

    async def stop(self) -> None:
        """Drain and end Envoy; call it after `run` has ended."""
        await self.process.stop()

    async def set_route(self, ref: RouteRef, rules: Sequence[RouteRule]) -> None:
        """Make the route or replace its rules. The order of making decides who owns a public path."""
        await self.change_route(ref, lambda _: rules)

    async def change_route(
        self, ref: RouteRef, change: Callable[[RouteState | None], Sequence[RouteRule]]
    ) -> None:
        """Read, change and write a route's rules as one; `change` gets None when it is not there."""
        check_name(ref)

        def apply(state: State) -> State:
            rules = tuple(change(state.routes.get(ref)))
            check_rules(rules)
            return states.with_route(state, ref, rules)

        await self._submit(apply)

    async def remove_route(self, ref: RouteRef) -> None:
        """Remove the route; absent is success."""
        await self._submit(lambda state: states.without_route(state, ref))

    def find_route(self, ref: RouteRef) -> RouteState | None:
        """Return the route as it is stored, None when it is not there."""
        return self._state.routes.get(ref)

    async def is_route_live(self, ref: RouteRef) -> bool:
        """Tell whether the running Envoy serves the route as it is stored.

        A missing route is live once nothing of it is served. One whose path an older route of
        another namespace owns is not. Raises `Unavailable` when Envoy cannot be asked.
        """
        if is_shadowed(self._state, ref):
            return False
        table = table_name(ref.cluster)
        scope = f"http.{table}.rds.{table}"
        if scope not in self._versions:
            return ref not in self._state.routes
        return await self._swapper.is_acknowledged(scope, self._versions[scope])

    async def set_endpoints(
        self,
        cluster: ClusterId | None,
        namespace: str,
        service: str,
        addresses: Sequence[tuple[str, int]],
    ) -> None:
        """Set all addresses of a service; cluster None is the control plane."""
        given = [Address(host=host, port=port) for host, port in addresses]
        await self._set_service(
            ServiceRef(cluster=cluster, namespace=namespace, name=service), given
        )

    async def set_ingresses(
        self, namespace: str, service: str, clusters: Mapping[ClusterId, tuple[str, int]]
    ) -> None:
        """Set where each cluster admits traffic for a service of the control plane."""
        given = [
            Address(host=host, port=port, label=cluster)
            for cluster, (host, port) in clusters.items()
        ]
        await self._set_service(ServiceRef(cluster=None, namespace=namespace, name=service), given)

    async def remove_service(self, cluster: ClusterId | None, namespace: str, service: str) -> None:
        """Remove a service with its addresses; absent is success."""
        ref = ServiceRef(cluster=cluster, namespace=namespace, name=service)
        await self._submit(lambda state: states.without_service(state, ref))

    def find_endpoints(
        self, cluster: ClusterId | None, namespace: str, service: str
    ) -> tuple[Address, ...] | None:
        """Return the addresses as they are stored, None when there is no such service."""
        return self._state.services.get(
            ServiceRef(cluster=cluster, namespace=namespace, name=service)
        )

    async def ensure_cluster_listener(self, cluster: ClusterId) -> tuple[str, int]:
        """Return where the cluster admits traffic; opens the listener when there is none."""
        check_name(RouteRef(cluster=cluster, namespace="x", name="x"))
        port = await self._listener_port(cluster)
        for _ in range(_PORT_TRIES - 1):
            try:
                await self._open_listener(cluster, port)
            except Rejected as error:
                log.warning(
                    "cluster listener refused", cluster=cluster, port=port, error=str(error)
                )
                (port,) = await self._worker.call(self._ports.replace, _owner(cluster), 1)
            else:
                return LOOPBACK, port
        await self._open_listener(cluster, port)
        return LOOPBACK, port

    async def remove_cluster_listener(self, cluster: ClusterId) -> None:
        """Close the cluster's listener and forget its port; absent is success."""
        await self._submit(lambda state: states.without_listener(state, cluster))
        await self._worker.call(self._ports.release, _owner(cluster))

    async def _set_service(self, ref: ServiceRef, addresses: Sequence[Address]) -> None:
        check_name(ref)
        check_addresses(addresses)
        await self._submit(lambda state: states.with_service(state, ref, addresses))

    async def _listener_port(self, cluster: ClusterId) -> int:
        known = self._state.listeners.get(cluster)
        if known is not None:
            return known
        (port,) = await self._worker.call(self._ports.allocate, _owner(cluster), 1)
        return port

    async def _open_listener(self, cluster: ClusterId, port: int) -> None:
        await self._submit(lambda state: states.with_listener(state, cluster, port))

    async def _open(self) -> None:
        data = await self._worker.call(find_bytes, self._layout.state)
        if data is not None:
            self._state = parse_state(data.decode(errors="replace"), source=str(self._layout.state))
        if self.process.adopt():
            await self._resume()
        else:
            await self._start()

    async def _resume(self) -> None:
        """Go on with an adopted Envoy; what it does not take now is tried again later."""
        await self._swapper.load()
        try:
            await self._publish(self._state)
        except Unavailable as error:
            log.warning("envoy is behind", error=str(error))
            self._unsettled.set()

    async def _start(self) -> None:
        await self._worker.call(
            check_address_free, self._settings.gateway, self._settings.gateway_setting
        )
        moved = self._state
        for cluster, port in self._state.listeners.items():
            moved = states.with_moved_listener(moved, cluster, await self._free_port(cluster, port))
        await self._save(moved)
        self._state = moved
        snapshot = build_snapshot(moved, self._layout, self._settings)
        await self._note_versions(moved)
        await self._swapper.write(snapshot)
        await self.process.start(self._worker)
        await self._swapper.publish(snapshot)

    async def _free_port(self, cluster: ClusterId, port: int) -> int:
        try:
            await self._worker.call(check_address_free, Address(host=LOOPBACK, port=port), "")
        except Error:
            (port,) = await self._worker.call(self._ports.replace, _owner(cluster), 1)
            log.warning("cluster listener moved", cluster=cluster, port=port)
        return port

    async def _submit(self, change: Change) -> None:
        request = _Request(change, asyncio.get_running_loop().create_future())
        self._requests.append(request)
        self._wake.set()
        await request.done

    async def _serve_changes(self) -> None:
        """Take all that has been asked for meanwhile into one swap."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            batch, self._requests = self._requests, []
            await self._settle(batch)

    async def _repair(self) -> None:
        while True:
            await self._unsettled.wait()
            self._unsettled.clear()
            await self._clock.sleep(_REPAIR_S)
            self._wake.set()

    async def _settle(self, batch: Sequence[_Request]) -> None:
        state, applied = _apply(self._state, batch)
        try:
            await self._publish(state)
        except Rejected as error:
            await self._sort_out(applied, error)
        except Unavailable as error:
            self._unsettled.set()
            _fail(applied, error)
        else:
            _finish(applied)

    async def _sort_out(self, applied: Sequence[_Request], error: Rejected) -> None:
        """Undo what was refused; of several changes, try each by itself."""
        if len(applied) > 1:
            for request in applied:
                await self._settle([request])
            return
        _fail(applied, error)
        log.error("envoy refused a change", error=str(error))
        if applied:
            await self._settle([])

    async def _publish(self, state: State) -> None:
        before = self._state
        if state != before:
            await self._save(state)
            self._state = state
        await self._note_versions(state)
        snapshot = await self._worker.call(build_snapshot, state, self._layout, self._settings)
        try:
            await self._swapper.publish(snapshot)
        except Rejected:
            self._state = before
            await self._save(before)
            await self._note_versions(before)
            raise

    async def _note_versions(self, state: State) -> None:
        snapshot = await self._worker.call(build_snapshot, state, self._layout, self._settings)
        listed = await self._worker.call(files, snapshot, self._layout)
        self._versions = {file.scope: file.version for file in listed}

    async def _save(self, state: State) -> None:
        await self._worker.call(write_atomically, self._layout.state, render_state(state).encode())

    def _fail_all(self, error: Error) -> None:
        _fail(self._requests, error)
        self._requests = []


def _apply(state: State, batch: Sequence[_Request]) -> tuple[State, list[_Request]]:
    applied: list[_Request] = []
    for request in batch:
        try:
            state = request.change(state)
        except Error as error:
            _fail([request], error)
        else:
            applied.append(request)
    return state, applied


def _finish(requests: Sequence[_Request]) -> None:
    for request in requests:
        if not request.done.done():
            request.done.set_result(None)


def _fail(requests: Sequence[_Request], error: Error) -> None:
    for request in requests:
        if not request.done.done():
            request.done.set_exception(error)


def _owner(cluster: ClusterId) -> str:
    return f"envoy cluster {cluster}"
