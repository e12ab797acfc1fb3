"""A real Envoy under a real data plane, and small replicas that say what they were asked."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from aiohttp import web

from maserve.base.clock import Clock, SystemClock
from maserve.base.keys import ClusterId
from maserve.base.tasks import run_until
from maserve.envoy import Address, DataPlane, EnvoySettings, Ports, RouteRef, RouteRule
from maserve.host import PortBook, Supervisor
from maserve.testing.load import HttpSender, LoadSettings, LoadSummary, OpenLoopLoad

NAMESPACE = "team"
SERVER = "demo-a"
DEPLOYMENT = "dep-1"
SERVICE = f"{SERVER}-inference-service"
EAST = ClusterId("east")
WEST = ClusterId("west")
DISCOVERY = RouteRef(cluster=None, namespace=NAMESPACE, name=f"{SERVER}-discovery")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rig:
    """One life of a control plane: its data plane and what it was built from."""

    plane: DataPlane
    supervisor: Supervisor
    ports: PortBook
    settings: EnvoySettings

    @property
    def url(self) -> str:
        """Return the deployment's public URL."""
        host, port = self.plane.gateway_address
        return f"http://{host}:{port}/{SERVER}/{DEPLOYMENT}"

    @property
    def gateway(self) -> str:
        host, port = self.plane.gateway_address
        return f"http://{host}:{port}"


@asynccontextmanager
async def one_life(
    folder: Path,
    settings: EnvoySettings | None = None,
    *,
    listener_ports: Ports | None = None,
) -> AsyncIterator[Rig]:
    """Run a data plane in `folder`; leaving lets Envoy run on, as when the control plane ends."""
    # Each folder has ports of its own: rigs of tests that run at the same time do not meet.
    clock, rng = SystemClock(), random.Random(str(folder))  # noqa: S311 - no secret
    ports = PortBook(folder / "ports.json", rng=rng)
    gateway = Address(host="127.0.0.1", port=ports.allocate("gateway", 1)[0])
    given = replace(settings or EnvoySettings(folder=folder / "envoy"), gateway=gateway)
    async with (
        Supervisor(folder / "processes", clock=clock) as supervisor,
        DataPlane(
            given,
            supervisor=supervisor,
            ports=listener_ports or ports,
            clock=clock,
            rng=rng,
        ) as plane,
        asyncio.TaskGroup() as group,
    ):
        stop = asyncio.Event()
        group.create_task(run_until(stop, plane.run()))
        try:
            yield Rig(plane=plane, supervisor=supervisor, ports=ports, settings=given)
        finally:
            stop.set()


@asynccontextmanager
async def running_rig(
    folder: Path,
    settings: EnvoySettings | None = None,
    *,
    listener_ports: Ports | None = None,
) -> AsyncIterator[Rig]:
    """Run a data plane in `folder`, and end its Envoy with it."""
    try:
        async with one_life(folder, settings, listener_ports=listener_ports) as rig:
            yield rig
    finally:
        await end_envoy(folder)


async def end_envoy(folder: Path) -> None:
    """End what earlier lives have left running."""
    async with Supervisor(folder / "processes", clock=SystemClock()) as supervisor:
        await supervisor.terminate("envoy", grace_s=2)


async def serve(rig: Rig, clusters: dict[ClusterId, Sequence["StubReplica"]], model: str) -> None:
    """Make everything of one server and one deployment, as the controllers would."""
    ingresses = {}
    for cluster, replicas in clusters.items():
        ingresses[cluster] = await rig.plane.ensure_cluster_listener(cluster)
        await set_replicas(rig, cluster, replicas)
        await point_at(rig, cluster, model)
    await rig.plane.set_ingresses(NAMESPACE, f"{SERVER}-endpoints", ingresses)
    await rig.plane.set_route(DISCOVERY, discovery_rules())


async def set_replicas(rig: Rig, cluster: ClusterId, replicas: Sequence["StubReplica"]) -> None:
    """Publish exactly these replicas of one cluster."""
    addresses = [replica.address for replica in replicas]
    await rig.plane.set_endpoints(cluster, NAMESPACE, SERVICE, addresses)


async def point_at(rig: Rig, cluster: ClusterId, model: str) -> None:
    """Flip one cluster's traffic route to a model."""
    await rig.plane.set_route(traffic(cluster), traffic_rules(model))


def traffic(cluster: ClusterId) -> RouteRef:
    return RouteRef(cluster=cluster, namespace=NAMESPACE, name=f"{SERVER}-traffic")


def traffic_rules(model: str, server: str = SERVER) -> tuple[RouteRule, ...]:
    service = f"{server}-inference-service"
    return (
        exact_rule(f"/cluster/{server}", "/v2", service),
        prefix_rule(f"/cluster/{server}/{DEPLOYMENT}", f"/v2/models/{model}", service),
    )


def discovery_rules(server: str = SERVER) -> tuple[RouteRule, ...]:
    service = f"{server}-endpoints"
    public = f"/{server}/{DEPLOYMENT}"
    return (
        exact_rule(f"/{server}", f"/cluster/{server}", service),
        prefix_rule(public, f"/cluster{public}", service),
    )


def exact_rule(match: str, rewrite: str, service: str) -> RouteRule:
    return RouteRule(
        match_path=match,
        is_exact=True,
        rewrite_path=rewrite,
        is_full_rewrite=True,
        service=service,
    )


def prefix_rule(match: str, rewrite: str, service: str) -> RouteRule:
    return RouteRule(
        match_path=match,
        is_exact=False,
        rewrite_path=rewrite,
        is_full_rewrite=False,
        service=service,
    )


@dataclass(slots=True)
class StubReplica:
    """Answers with 200, its name and the path it was asked for. Use as `async with`.

    A model that is in `unloaded` once the request is there as a whole is answered with 404.
    """

    name: str
    delay_s: float = 0.0
    dies_on_request: bool = False
    chunks: int = 0
    """With some, every answer is a stream of so many pieces, `chunk_every_s` apart."""
    chunk_every_s: float = 0.0
    unloaded: set[str] = field(default_factory=set)
    seen: list[tuple[str, str]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    _runner: web.AppRunner | None = None

    @property
    def address(self) -> tuple[str, int]:
        assert self._runner is not None, "the replica is not running"  # noqa: S101
        host, port = self._runner.addresses[0]
        return host, port

    async def __aenter__(self) -> Self:
        await self.listen(0)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.kill()

    async def listen(self, port: int) -> None:
        """Start on a port, 0 for any."""
        app = web.Application(client_max_size=1 << 30)
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", port).start()

    async def kill(self) -> None:
        """End at once: connections are reset, requests in flight are lost."""
        runner, self._runner = self._runner, None
        if runner is None:
            return
        for site in tuple(runner.sites):
            await site.stop()
        for connection in runner.server.connections if runner.server else ():
            if connection.transport is not None:
                connection.transport.abort()
        await runner.cleanup()

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        for number in range(self.chunks):
            await asyncio.sleep(self.chunk_every_s)
            await answer.write(f"{number};".encode())
        return answer

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.seen.append((request.method, request.raw_path))
        self.headers.append({key.lower(): value for key, value in request.headers.items()})
        body = await request.read()
        if self.dies_on_request and request.transport is not None:
            request.transport.abort()
        if self.chunks:
            return await self._stream(request)
        await asyncio.sleep(self.delay_s)
        model = request.path.removeprefix("/v2/models/").partition("/")[0]
        if model in self.unloaded:
            return web.json_response({"error": "unknown model"}, status=404)
        answer = {
            "model_name": model,
            "replica": self.name,
            "path": request.path,
            "size": len(body),
        }
        return web.json_response(answer)


class Load:
    """Constant load on one URL while a test does something; `summary` is there afterwards."""

    def __init__(self, url: str, *, rate_per_s: float, clock: Clock | None = None) -> None:
        self._url = url
        self._rate_per_s = rate_per_s
        self._clock = clock or SystemClock()
        self.summary = LoadSummary()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Self]:
        """Send until the block ends, then wait for the answers."""
        settings = LoadSettings(rate_per_s=self._rate_per_s, duration_s=60)
        async with HttpSender(self._url, b'{"inputs": []}') as sender:
            load = OpenLoopLoad(settings, sender, clock=self._clock)
            async with asyncio.TaskGroup() as group:
                running = group.create_task(load.run())
                try:
                    yield self
                finally:
                    load.stop()
            self.summary = running.result()
