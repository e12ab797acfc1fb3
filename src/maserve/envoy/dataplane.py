"""The data plane of one machine: what it shall serve, and when Envoy does."""

import asyncio
import random
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from maserve.base.clock import Clock
from maserve.base.errors import Unavailable
from maserve.base.keys import ClusterId
from maserve.envoy import state as states
from maserve.envoy.admin import Admin
from maserve.envoy.check import check_addresses, check_name, check_rules
from maserve.envoy.layout import GATEWAY_TABLE, Layout, table_name
from maserve.envoy.ledger import Change, Ledger
from maserve.envoy.listening import ListenerPorts, Ports, taken, wait_address_free
from maserve.envoy.process import EnvoyProcess
from maserve.envoy.render import Renderer
from maserve.envoy.snapshot import find_owner, route_scope
from maserve.envoy.state import RouteState, State
from maserve.envoy.swap import Rejected, Swapper
from maserve.envoy.types import (
    LOOPBACK,
    Address,
    EnvoySettings,
    RouteRef,
    RouteRule,
    ServiceRef,
)
from maserve.host import HttpClient, Supervisor, Worker, can_watch

_PORT_TRIES = 3


class DataPlane:
    """Owns configuration and process of one Envoy. Use as `async with`, and keep `run` running.

    Entering adopts a running Envoy or starts one; leaving lets it run on, `stop` ends it. All
    changes are idempotent and return once Envoy has acknowledged them. They raise `Invalid` for
    what Envoy could never take, `Rejected` (an `Unavailable`) for what it has refused, which is
    undone, and `Unavailable` when it does not answer: the change is kept then, and takes effect
    once Envoy is back.
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
        self._clock = clock
        self._worker = Worker("envoy-files")
        self._ports = ListenerPorts(ports, self._worker)
        socket = self._layout.admin_socket(short_root or Path(tempfile.gettempdir()))
        self._http = HttpClient(socket=socket)
        self._admin = Admin(self._http)
        self.process = EnvoyProcess(
            settings,
            admin_socket=socket,
            supervisor=supervisor,
            admin=self._admin,
            worker=self._worker,
            clock=clock,
            rng=rng,
            on_restart=self._look_again,
        )
        renderer = Renderer(self._layout, settings)
        self._swapper = Swapper(
            self._layout,
            renderer=renderer,
            admin=self._admin,
            process=self.process,
            worker=self._worker,
            clock=clock,
            timeout_s=settings.acknowledge_timeout_s,
        )
        self._ledger = Ledger(
            self._layout,
            renderer=renderer,
            swapper=self._swapper,
            worker=self._worker,
            clock=clock,
            can_watch=can_watch,
        )
        self._asked_for: set[ClusterId] = set()
        self._has_started = False
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

    @property
    def has_started(self) -> bool:
        """Tell whether entering has started an Envoy; False when it has adopted one."""
        return self._has_started

    async def run(self) -> None:
        """Serve changes and keep Envoy running, until cancelled. Envoy itself runs on."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.process.run())
            group.create_task(self._ledger.run())

    async def stop(self) -> None:
        """Drain and end Envoy; call it after `run` has ended."""
        await self.process.stop()

    async def set_route(self, ref: RouteRef, rules: Sequence[RouteRule]) -> None:
        """Make the route or replace its rules; the older route owns a public path claimed twice."""
        await self.change_route(ref, lambda _: rules)

    async def change_route(
        self, ref: RouteRef, change: Callable[[RouteState | None], Sequence[RouteRule]]
    ) -> None:
        """Read, change and write a route's rules as one; `change` gets None for a missing one."""
        check_name(ref)

        def apply(state: State) -> State:
            rules = tuple(change(state.routes.get(ref)))
            check_rules(rules)
            return states.with_route(state, ref, rules)

        await self._ledger.submit(apply)

    async def remove_route(self, ref: RouteRef) -> None:
        """Remove the route; absent is success."""
        await self._change(lambda state: states.without_route(state, ref))

    def find_route(self, ref: RouteRef) -> RouteState | None:
        """Return the route as it is stored, None when it is not there."""
        return self._ledger.state.routes.get(ref)

    async def is_route_live(self, ref: RouteRef) -> bool:
        """Tell whether the running Envoy serves the route as it is stored.

        A missing route is live once nothing of it is served. Raises `Unavailable` when Envoy cannot
        be asked, and naming the older route of another namespace that owns a path of this one.
        """
        owner = find_owner(self._ledger.state, ref)
        if owner is not None:
            path, namespace = owner.rule.match_path, owner.ref.namespace
            raise Unavailable(
                f"the gateway serves {path} for namespace {namespace}, where that name was first; "
                "use another name, or remove the other one"
            )
        is_live = await self._swapper.find_acknowledgement(route_scope(table_name(ref.cluster)))
        return ref not in self._ledger.state.routes if is_live is None else is_live

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
        try:
            ref = ServiceRef(cluster=None, namespace=namespace, name=service)
            await self._set_service(ref, given)
        finally:
            self.let_go(clusters)

    async def remove_service(self, cluster: ClusterId | None, namespace: str, service: str) -> None:
        """Remove a service with its addresses; absent is success."""
        ref = ServiceRef(cluster=cluster, namespace=namespace, name=service)
        await self._change(lambda state: states.without_service(state, ref))

    def find_endpoints(
        self, cluster: ClusterId | None, namespace: str, service: str
    ) -> tuple[Address, ...] | None:
        """Return the addresses as they are stored, None when there is no such service."""
        return self._ledger.state.services.get(
            ServiceRef(cluster=cluster, namespace=namespace, name=service)
        )

    async def ensure_cluster_listener(self, cluster: ClusterId) -> tuple[str, int]:
        """Return where the cluster admits traffic; opens the listener when there is none.

        It stays open while anything of the cluster is left, and until a publication of it was tried
        or `let_go` was called.
        """
        check_name(RouteRef(cluster=cluster, namespace="x", name="x"))
        self._asked_for.add(cluster)
        try:
            return await self._ensure_listener(cluster)
        except BaseException:
            self.let_go((cluster,))
            raise

    def let_go(self, clusters: Iterable[ClusterId]) -> None:
        """Keep listeners that were asked for no longer than others: whoever asked has finished."""
        self._asked_for.difference_update(clusters)

    def find_cluster_listener(self, cluster: ClusterId) -> tuple[str, int] | None:
        """Return where the cluster admits traffic, None when it does not."""
        port = self._ledger.state.listeners.get(cluster)
        return None if port is None else (LOOPBACK, port)

    async def _set_service(self, ref: ServiceRef, addresses: Sequence[Address]) -> None:
        check_name(ref)
        check_addresses(addresses)
        await self._change(lambda state: states.with_service(state, ref, addresses))

    async def _change(self, change: Change) -> None:
        """Make a change that may be the end of a cluster here: its listener then closes."""
        before = self._ledger.state.listeners
        await self._ledger.submit(
            lambda state: states.without_idle_listeners(change(state), keep=self._asked_for)
        )
        await self._release_ports(before)

    async def _release_ports(self, before: Mapping[ClusterId, int]) -> None:
        """Forget the ports of listeners that there were before and are no more."""
        await self._ports.release(before.keys() - self._ledger.state.listeners.keys())

    def _look_again(self) -> None:
        self._ledger.look_again()

    async def _listener_port(self, cluster: ClusterId) -> int:
        known = self._ledger.state.listeners.get(cluster)
        if known is not None:
            return known
        return await self._ports.allocate(cluster)

    async def _ensure_listener(self, cluster: ClusterId) -> tuple[str, int]:
        port = await self._listener_port(cluster)
        for _ in range(_PORT_TRIES - 1):
            try:
                await self._open_listener(cluster, port)
            except Rejected:
                port = await self._ports.replace(cluster)
            else:
                return LOOPBACK, port
        await self._open_listener(cluster, port)
        return LOOPBACK, port

    async def _open_listener(self, cluster: ClusterId, port: int) -> None:
        await self._ledger.submit(lambda state: states.with_listener(state, cluster, port))

    async def _open(self) -> None:
        await self._ledger.load()
        before = self._ledger.state.listeners
        await self._ledger.save(states.without_idle_listeners(self._ledger.state))
        await self._release_ports(before)
        if self.process.adopt():
            await self._swapper.load()
            if not self._swapper.has_listener_at(self._settings.gateway):
                await self._check_gateway_free()
            await self._ledger.catch_up()
        if self.process.pid is None:  # none was there, or it has ended in this moment
            await self._start()

    async def _start(self) -> None:
        await self._check_gateway_free()
        state = self._ledger.state
        for cluster, port in self._ledger.state.listeners.items():
            state = states.with_moved_listener(
                state, cluster, await self._ports.find_free(cluster, port)
            )
        await self._ledger.save(state)
        await self._ledger.prepare()
        await self.process.start()
        async with AsyncExitStack() as failed:
            failed.push_async_callback(self.process.stop)
            if await self._has_lost_gateway():
                raise taken(self._settings.gateway, self._settings.gateway_setting)
            failed.pop_all()
        self._has_started = True

    async def _has_lost_gateway(self) -> bool:
        """Tell whether Envoy could not listen there: somebody may have come first since we looked.

        Two can bind an address in the same moment and only one can listen: the other's Envoy takes
        all that it is given and drops its listener.
        """
        has_answered = not await self._ledger.catch_up() or self._swapper.is_current()
        return has_answered and GATEWAY_TABLE not in await self._admin.listeners()

    async def _check_gateway_free(self) -> None:
        await wait_address_free(
            self._settings.gateway,
            self._settings.gateway_setting,
            worker=self._worker,
            clock=self._clock,
        )
