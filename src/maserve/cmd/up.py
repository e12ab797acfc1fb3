"""`maserve up`: the whole control plane and its data plane on one machine, in the foreground."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import replace

from dishka import AsyncContainer
from prometheus_client import CollectorRegistry, start_http_server

from maserve.apiserver import ApiServer, resolve_address
from maserve.backends.triton.local import LocalTritonBackend
from maserve.base.clock import SystemClock
from maserve.base.errors import Denied
from maserve.base.tasks import run_until
from maserve.cmd.addresses import cannot_listen, check_different, check_free, parse_address
from maserve.cmd.parts import Parts
from maserve.cmd.settings import Settings
from maserve.cmd.transitions import Say, Teller
from maserve.cmd.wiring import Module, build_container, invoke_all
from maserve.envoy import PROGRAM as GATEWAY_PROGRAM
from maserve.envoy import DataPlane
from maserve.host import DataFolder, FolderLock, Supervisor, find_json, write_json
from maserve.runtime import AlwaysLeader, Manager, ManagerSettings
from maserve.store import Store

_GATEWAY = "gatewayAddress"

_NEEDED = (
    Store,
    DataPlane,
    Supervisor,
    LocalTritonBackend,
    Parts,
    CollectorRegistry,
    ApiServer,
)
"""What a list of modules must provide for `maserve up`, besides what its own functions ask for."""


async def run_up(settings: Settings, say: Say, modules: Sequence[Module]) -> None:
    """Serve with these modules until SIGINT or SIGTERM, then stop gracefully.

    Replicas and Envoy that an earlier process left on the data folder are adopted as they run. With
    `keep_running` they are left running at the end. Raises `Denied` when another process serves
    the folder, `Invalid` or `Unavailable` for an address that cannot be used. A start that fails
    ends an Envoy that it has started itself, and leaves an adopted one alone.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    await serve_until(stop, settings, say, modules)


async def serve_until(
    stop: asyncio.Event, settings: Settings, say: Say, modules: Sequence[Module]
) -> None:
    """Serve with these modules until `stop`; otherwise as `run_up`."""
    home = DataFolder(settings.data_dir)
    with _locked(home) as lock:
        await _check_addresses(settings)
        lock.publish(settings.api_address)
        async with _container(modules, settings, say) as container:
            # What cannot be used fails here, before anything is started or written.
            await container.get(Store)
            plane = await container.get(DataPlane)
            async with _undone_if_it_fails(plane) as ready:
                write_json(home.settings_file, {_GATEWAY: settings.gateway_address})
                await _serve(container, modules, settings, say, ready=ready, stop=stop)
            if settings.keep_running:
                say("replicas and gateway keep running; `maserve down` ends them")
            else:
                await _end_data_plane(container, say)
                say("stopped")


async def run_down(settings: Settings, say: Say, modules: Sequence[Module]) -> None:
    """End what `--keep-running` or a killed process left running on a data folder.

    A process that still serves the folder is asked to stop gracefully instead, and waited for.
    """
    home = DataFolder(settings.data_dir)
    holder = home.find_holder()
    if holder is not None:
        say(f"asking process {holder} to stop")
        os.kill(holder, signal.SIGTERM)
        await _until_free(home)
        say("it has stopped")
    if not any(home.processes.glob("*")):
        say(f"nothing runs on {settings.data_dir}")
        return
    with home.lock():
        settings = replace(settings, gateway_address=await _find_gateway(home, settings))
        async with _container(modules, settings, say) as container:
            await _end_data_plane(container, say)
    say("nothing of it runs any more")


async def _find_gateway(home: DataFolder, settings: Settings) -> str:
    """Return the address the gateway has; any will do for one that is started for the end only."""
    async with Supervisor(home.processes, clock=SystemClock()) as programs:
        if programs.find(GATEWAY_PROGRAM) is None:
            return "127.0.0.1:0"
    known = find_json(home.settings_file)
    address = known.get(_GATEWAY) if isinstance(known, dict) else None
    return address or settings.gateway_address


@contextmanager
def _locked(home: DataFolder) -> Iterator[FolderLock]:
    with ExitStack() as stack:
        try:
            lock = stack.enter_context(home.lock())
        except Denied as error:
            text = f"{error}; `maserve down` ends that one; or name another --data-dir"
            raise Denied(text) from error
        yield lock


async def _check_addresses(settings: Settings) -> None:
    """Fail for an address that is taken while nothing is started yet.

    The gateway's own is looked at by the data plane, which may be listening there already.
    """
    metrics = parse_address(settings.metrics_address, "--metrics-address")
    gateway = parse_address(settings.gateway_address, "--gateway-address")
    for address in await resolve_address(settings.api_address):
        if not address.startswith("unix:"):
            api = parse_address(address, "--api-address")
            check_different(api_address=api, gateway_address=gateway, metrics_address=metrics)
            check_free(*api, "--api-address")
    check_different(gateway_address=gateway, metrics_address=metrics)
    check_free(*metrics, "--metrics-address")


async def _until_free(home: DataFolder) -> None:
    while home.find_holder() is not None:  # noqa: ASYNC110 - another process gives no event
        await asyncio.sleep(0.1)


@asynccontextmanager
async def _container(
    modules: Sequence[Module], settings: Settings, say: Say
) -> AsyncIterator[AsyncContainer]:
    values = {Settings: settings, Teller: Teller(say)}
    container = build_container(modules, values, wanted=_NEEDED)
    try:
        yield container
    finally:
        await container.close()


async def _serve(
    container: AsyncContainer,
    modules: Sequence[Module],
    settings: Settings,
    say: Say,
    *,
    ready: asyncio.Event,
    stop: asyncio.Event,
) -> None:
    """Run the control plane until `stop`; sets `ready` once it serves. The data plane runs on."""
    await invoke_all(container, modules)
    parts = await container.get(Parts)
    manager = Manager(
        clients=parts.clients,
        sources=parts.sources,
        workers=parts.workers,
        leadership=AlwaysLeader(),
        settings=ManagerSettings(),
    )
    registry = await container.get(CollectorRegistry)
    with metrics_served(settings.metrics_address, registry):
        async with await container.get(ApiServer) as api:
            listening = (
                f"ready  api {api.address}  gateway http://{settings.gateway_address}  "
                f"metrics http://{settings.metrics_address}/metrics  data {settings.data_dir}"
            )

            async def announce() -> None:
                await manager.wait_leading()
                ready.set()
                say(listening)

            await run_until(stop, manager.run(), api.serve(), announce())
            say("stopping")


@asynccontextmanager
async def _undone_if_it_fails(plane: DataPlane) -> AsyncIterator[asyncio.Event]:
    """End the Envoy that this start has started, should it fail before the event is set.

    Nobody would look after it; one that was adopted answers requests and stays.
    """
    ready = asyncio.Event()
    try:
        yield ready
    except BaseException:
        if plane.has_started and not ready.is_set():
            await plane.stop()
        raise


async def _end_data_plane(container: AsyncContainer, say: Say) -> None:
    """Drain every replica while the gateway still runs, then end the gateway."""
    programs = await container.get(Supervisor)
    plane = await container.get(DataPlane)
    triton = await container.get(LocalTritonBackend)
    done = asyncio.Event()

    async def drain() -> None:
        say("draining replicas")
        await triton.stop_all()
        done.set()

    await run_until(done, programs.run(), plane.run(), triton.run(), drain())
    await plane.stop()


@contextmanager
def metrics_served(address: str, registry: CollectorRegistry) -> Iterator[None]:
    """Serve `/metrics` on a loopback address. Raises `Invalid`, or `Unavailable` if it is taken."""
    host, port = parse_address(address, "--metrics-address")
    try:
        server, thread = start_http_server(port, addr=host, registry=registry)
    except OSError as error:
        raise cannot_listen(address, "--metrics-address", error) from error
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
