"""The modules of the embedded mode: SQLite, real Triton and Envoy processes, files."""

import random
from collections.abc import AsyncIterator

from prometheus_client import CollectorRegistry

from maserve.apiserver import ApiServer, ApiSettings, Extensions, Inspector, stock_extensions
from maserve.artifacts import Artifacts
from maserve.backends import BackendRegistry
from maserve.backends.triton import TritonSettings
from maserve.backends.triton.local import (
    Engine,
    LocalTritonBackend,
    LocalTritonParts,
    TritonWheel,
    this_interpreter,
)
from maserve.base.clock import Clock, SystemClock
from maserve.base.keys import ClusterId, Key
from maserve.cmd.addresses import parse_address
from maserve.cmd.inspector import LocalInspector
from maserve.cmd.modelsync_command import build_modelsync_command
from maserve.cmd.parts import Parts, ServerChanged
from maserve.cmd.serving import ServerInformer
from maserve.cmd.settings import Settings
from maserve.cmd.stored_artifacts import StoredArtifacts
from maserve.cmd.transitions import Teller, TellingRecorder
from maserve.cmd.wiring import Module
from maserve.deployment.stock import ArtifactCheck, RolloutSettings
from maserve.endpoints import Provider, Publisher
from maserve.endpoints.local import LocalProvider, LocalPublisher
from maserve.envoy import Address, DataPlane, EnvoySettings
from maserve.host import (
    DataFolder,
    HttpClient,
    PortBook,
    Supervisor,
    Worker,
)
from maserve.inferenceserver import record_local_meaning
from maserve.modelconfig import ModelConfigProvider
from maserve.modelconfig.file import FileModelConfigProvider
from maserve.routing import Manager as RoutingManager
from maserve.routing import TrafficProbe
from maserve.routing.local import LocalRoutingManager, LocalTrafficProbe
from maserve.runtime import EventRecorder, EventSettings, LoggingRecorder, Transition
from maserve.store import Store
from maserve.store.sqlite import SqliteStore
from maserve.wire import v2

DATABASE = "maserve.db"


def clock() -> Clock:
    return SystemClock()


def rng() -> random.Random:
    return random.SystemRandom()


def registry() -> CollectorRegistry:
    return CollectorRegistry()


def parts() -> Parts:
    return Parts()


def folder(settings: Settings) -> DataFolder:
    return DataFolder(settings.data_dir)


def rollout_settings(settings: Settings) -> RolloutSettings:
    return settings.rollout


def triton_settings(settings: Settings) -> TritonSettings:
    return settings.triton


async def sqlite_store(
    home: DataFolder, clock: Clock, rng: random.Random
) -> AsyncIterator[SqliteStore]:
    async with SqliteStore(home.path / DATABASE, clock=clock, rng=rng) as store:
        yield store


def store(sqlite: SqliteStore) -> Store:
    return sqlite


def logging_recorder(sqlite: SqliteStore, clock: Clock) -> LoggingRecorder:
    return LoggingRecorder(sqlite.events, source="maserve", clock=clock, settings=EventSettings())


def recorder(logging: LoggingRecorder, teller: Teller) -> EventRecorder:
    return TellingRecorder(logging, teller)


async def supervisor(home: DataFolder, clock: Clock) -> AsyncIterator[Supervisor]:
    async with Supervisor(home.processes, clock=clock) as made:
        yield made


def ports(home: DataFolder, rng: random.Random) -> PortBook:
    return PortBook(home.ports_file, rng=rng)


async def data_plane(
    settings: Settings,
    home: DataFolder,
    programs: Supervisor,
    ports: PortBook,
    clock: Clock,
    rng: random.Random,
) -> AsyncIterator[DataPlane]:
    host, port = parse_address(settings.gateway_address, "--gateway-address")
    envoy = EnvoySettings(
        folder=home.path / "envoy",
        gateway=Address(host=host, port=port),
        idle_timeout_s=settings.gateway.idle_timeout_s,
        cors_origins=settings.gateway.cors_origins,
    )
    plane = DataPlane(envoy, supervisor=programs, ports=ports, clock=clock, rng=rng)
    async with plane:
        yield plane


def engine(settings: Settings, home: DataFolder) -> Engine:
    return TritonWheel(home.engines, settings.triton, interpreter=this_interpreter())


def triton_backend(
    settings: Settings,
    home: DataFolder,
    programs: Supervisor,
    ports: PortBook,
    clock: Clock,
    plane: DataPlane,
    engine: Engine,
    changed: ServerChanged,
) -> LocalTritonBackend:
    return LocalTritonBackend(
        LocalTritonParts(
            supervisor=programs,
            folder=home,
            ports=ports,
            clock=clock,
            settings=settings.triton,
            engine=engine,
            modelsync=lambda launch: build_modelsync_command(settings, launch),
            endpoints=plane,
            changed=changed,
            files=Worker("replica-files"),
        )
    )


def backends(triton: LocalTritonBackend) -> BackendRegistry:
    return BackendRegistry({v2.BACKEND_TYPE_TRITON: triton})


async def model_config(
    home: DataFolder, triton: LocalTritonBackend, changed: ServerChanged, clock: Clock
) -> AsyncIterator[ModelConfigProvider]:
    def note(server: Key, cluster: ClusterId) -> None:
        triton.config_changed(server, cluster)
        changed.announce(server)

    async with FileModelConfigProvider(home, changed=note, clock=clock) as provider:
        yield provider


def routes(plane: DataPlane) -> RoutingManager:
    return LocalRoutingManager(plane)


def probe(plane: DataPlane, http: HttpClient) -> TrafficProbe:
    return LocalTrafficProbe(plane, http)


async def http() -> AsyncIterator[HttpClient]:
    async with HttpClient() as client:
        yield client


def provider(plane: DataPlane) -> Provider:
    return LocalProvider(plane)


def publisher(plane: DataPlane) -> Publisher:
    return LocalPublisher(plane)


async def artifact_check(settings: Settings) -> AsyncIterator[ArtifactCheck]:
    async with Artifacts(settings.storage) as artifacts:
        yield StoredArtifacts(artifacts)


def inspector(
    store: Store,
    sqlite: SqliteStore,
    backends: BackendRegistry,
    triton: LocalTritonBackend,
    model_config: ModelConfigProvider,
    routes: RoutingManager,
    publisher: Publisher,
    home: DataFolder,
    clock: Clock,
) -> Inspector:
    return LocalInspector(
        store=store,
        events=sqlite.events,
        backends=backends,
        replicas=triton,
        model_config=model_config,
        routes=routes,
        publisher=publisher,
        folder=home,
        clock=clock,
    )


def extensions(store: Store) -> Extensions:
    return stock_extensions(store, environment="unspecified")


def api_server(
    settings: Settings,
    store: Store,
    inspector: Inspector,
    extensions: Extensions,
    clock: Clock,
    registry: CollectorRegistry,
) -> ApiServer:
    return ApiServer(
        ApiSettings(address=settings.api_address),
        store,
        inspector=inspector,
        extensions=extensions,
        clock=clock,
        registry=registry,
    )


def run_parts(
    parts: Parts,
    programs: Supervisor,
    plane: DataPlane,
    triton: LocalTritonBackend,
    events: LoggingRecorder,
) -> None:
    """Have the machine's long-running parts started before the controllers."""
    parts.clients += [programs, plane, triton, events]


def tell_local_meaning(servers: ServerInformer, recorder: EventRecorder) -> None:
    """Say on each server, once a spec, what of it means something else here."""

    def handle(transition: Transition[v2.InferenceServer]) -> None:
        old, new = transition.old, transition.new
        if new is None or new.status.observed_generation == new.metadata.generation:
            return  # an earlier process has said it
        if old is None or old.metadata.generation != new.metadata.generation:
            record_local_meaning(recorder, new)

    servers.subscribe(handle)


MACHINE = Module(
    name="machine",
    provide=(
        clock,
        rng,
        registry,
        folder,
        supervisor,
        ports,
        rollout_settings,
        triton_settings,
        parts,
        ServerChanged,
    ),
)
STORE = Module(name="store", provide=(sqlite_store, store, logging_recorder, recorder))
DATA_PLANE = Module(name="data plane", provide=(data_plane,))
BACKENDS = Module(name="backends", provide=(engine, triton_backend, backends))
MODEL_CONFIG = Module(name="model config", provide=(model_config,))
ROUTING = Module(name="routing", provide=(routes, probe, http))
ENDPOINTS = Module(name="endpoints", provide=(provider, publisher))
ARTIFACTS = Module(name="artifacts", provide=(artifact_check,))
PROCESSES = Module(name="processes", invoke=(run_parts, tell_local_meaning))
INSPECTION = Module(name="inspection", provide=(inspector,))
API_SERVER = Module(name="api server", provide=(extensions, api_server))
