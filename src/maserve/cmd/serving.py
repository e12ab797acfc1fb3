"""The stock serving modules: both controllers and their plugins (extension guide, section 1)."""

import random

from prometheus_client import CollectorRegistry

from maserve.backends import BackendRegistry
from maserve.base.clock import Clock
from maserve.base.keys import Key
from maserve.cmd.parts import Parts, ServerChanged
from maserve.cmd.wiring import Module
from maserve.deployment import DeploymentController, Registrar, SimpleRegistrar, known_servers
from maserve.deployment.stock import ArtifactCheck, RolloutSettings
from maserve.deployment.stock import Ports as DeploymentPorts
from maserve.deployment.stock import StockPlugin as DeploymentStockPlugin
from maserve.endpoints import Provider, Publisher
from maserve.gates import ModelGate
from maserve.inferenceserver import InferenceServerController
from maserve.inferenceserver import Plugin as InferenceServerPlugin
from maserve.inferenceserver.stock import Ports as InferenceServerPorts
from maserve.inferenceserver.stock import StockPlugin as InferenceServerStockPlugin
from maserve.modelconfig import ModelConfigProvider
from maserve.resource import R
from maserve.routing import Manager as RoutingManager
from maserve.routing import TrafficProbe
from maserve.runtime import (
    Controller,
    ControllerSettings,
    EventRecorder,
    Informer,
    InformerSettings,
    Metrics,
    Reconcile,
    WorkQueue,
    enqueue_announced,
    enqueue_changed,
    enqueue_related,
    keys_by,
)
from maserve.store import Store
from maserve.wire import v2

DEPLOYMENT_WORKERS = 10
INFERENCE_SERVER_WORKERS = 3

_INFERENCE_SERVER = v2.TargetType.Name(v2.TARGET_TYPE_INFERENCE_SERVER)

STOCK_SUBTYPES = ("realtime-serving", "batch-serving", "")
"""The subtypes the stock plugin is registered for (extension guide, section 2, Registration)."""


class ServerInformer(Informer[v2.InferenceServer]):
    """Keeps InferenceServers."""


class DeploymentInformer(Informer[v2.Deployment]):
    """Keeps Deployments."""


def server_informer(store: Store, clock: Clock, rng: random.Random) -> ServerInformer:
    return ServerInformer(
        v2.InferenceServer, store, clock=clock, rng=rng, settings=InformerSettings()
    )


def deployment_informer(store: Store, clock: Clock, rng: random.Random) -> DeploymentInformer:
    return DeploymentInformer(
        v2.Deployment, store, clock=clock, rng=rng, settings=InformerSettings()
    )


def registrar() -> Registrar:
    return SimpleRegistrar()


def model_gate(
    model_config: ModelConfigProvider, clock: Clock, settings: RolloutSettings
) -> ModelGate:
    return ModelGate(
        model_config=model_config, clock=clock, start_grace_s=settings.model_load_timeout_s
    )


def deployment_ports(
    store: Store,
    backends: BackendRegistry,
    model_config: ModelConfigProvider,
    routes: RoutingManager,
    probe: TrafficProbe,
    artifacts: ArtifactCheck,
    gate: ModelGate,
    recorder: EventRecorder,
    clock: Clock,
    settings: RolloutSettings,
) -> DeploymentPorts:
    return DeploymentPorts(
        store=store,
        backends=backends,
        model_config=model_config,
        routes=routes,
        probe=probe,
        artifacts=artifacts,
        gate=gate,
        recorder=recorder,
        clock=clock,
        settings=settings,
    )


def register_stock_plugin(plugins: Registrar, ports: DeploymentPorts) -> None:
    """Register the stock plugin; a module later in the list may register over it."""
    for sub_type in STOCK_SUBTYPES:
        plugins.register_plugin(_INFERENCE_SERVER, sub_type, DeploymentStockPlugin(ports))


def inference_server_plugin(
    backends: BackendRegistry,
    model_config: ModelConfigProvider,
    routes: RoutingManager,
    provider: Provider,
    publisher: Publisher,
    clock: Clock,
) -> InferenceServerPlugin:
    return InferenceServerStockPlugin(
        InferenceServerPorts(
            backends=backends,
            model_config=model_config,
            routes=routes,
            provider=provider,
            publisher=publisher,
            clock=clock,
        )
    )


class ControllerFactory:
    """Builds controllers that share clock, randomness and metrics."""

    def __init__(
        self,
        clock: Clock,
        rng: random.Random,
        registry: CollectorRegistry,
        recorder: EventRecorder,
    ) -> None:
        self._clock = clock
        self._rng = rng
        self._metrics = Metrics(registry)
        self._recorder = recorder

    def build(
        self, name: str, reconcile: Reconcile, workers: int, *, objects: Informer[R]
    ) -> Controller:
        """Build a controller of `objects`; what ends a pass of one is an event on it."""

        def tell(key: Key, why: str) -> None:
            if (found := objects.find(key)) is not None:
                self._recorder.warning(found, "ReconciliationError", why)

        queue: WorkQueue[Key] = WorkQueue(self._clock, rng=self._rng)
        return Controller(
            name,
            reconcile,
            clock=self._clock,
            rng=self._rng,
            queue=queue,
            metrics=self._metrics.of_controller(name, queue),
            settings=ControllerSettings(workers=workers),
            tell=tell,
        )


def start_inference_server_controller(
    parts: Parts,
    factory: ControllerFactory,
    store: Store,
    plugin: InferenceServerPlugin,
    recorder: EventRecorder,
    clock: Clock,
    servers: ServerInformer,
    changed: ServerChanged,
) -> None:
    """Add the controller, woken by its objects and by announcements of the world."""
    shell = InferenceServerController(store=store, plugin=plugin, recorder=recorder, clock=clock)
    controller = factory.build(
        "inference-server", shell.reconcile, INFERENCE_SERVER_WORKERS, objects=servers
    )
    enqueue_changed(servers, controller.enqueue)
    enqueue_announced(changed, controller.enqueue, lambda key: (key,))
    parts.sources.append(servers)
    parts.workers.append(controller)


def start_deployment_controller(
    parts: Parts,
    factory: ControllerFactory,
    store: Store,
    plugins: Registrar,
    recorder: EventRecorder,
    clock: Clock,
    servers: ServerInformer,
    deployments: DeploymentInformer,
    changed: ServerChanged,
) -> None:
    """Add the controller, woken also by everything that moves on the Deployments' servers."""
    shell = DeploymentController(store=store, registrar=plugins, recorder=recorder, clock=clock)
    controller = factory.build(
        "deployment", shell.reconcile, DEPLOYMENT_WORKERS, objects=deployments
    )
    on_server = keys_by(deployments.index(_servers_of))
    enqueue_changed(deployments, controller.enqueue)
    enqueue_related(
        servers,
        controller.enqueue,
        lambda server: on_server(Key(server.metadata.namespace, server.metadata.name)),
    )
    enqueue_announced(changed, controller.enqueue, on_server)
    parts.sources.append(deployments)
    parts.workers.append(controller)


def _servers_of(deployment: v2.Deployment) -> tuple[Key, ...]:
    """Return the servers a Deployment may be on and wants to be on."""
    names = (*known_servers(deployment), deployment.spec.inference_server.name)
    namespace = deployment.metadata.namespace
    return tuple(Key(namespace, name) for name in dict.fromkeys(names) if name)


RUNTIME = Module(
    name="runtime",
    provide=(server_informer, deployment_informer, ControllerFactory),
)
DEPLOYMENT_STOCK_PLUGIN = Module(
    name="deployment stock plugin",
    provide=(model_gate, deployment_ports),
    invoke=(register_stock_plugin,),
)
DEPLOYMENT = Module(name="deployment", provide=(registrar,), invoke=(start_deployment_controller,))
INFERENCE_SERVER_STOCK_PLUGIN = Module(
    name="inference server stock plugin", provide=(inference_server_plugin,)
)
INFERENCE_SERVER = Module(name="inference server", invoke=(start_inference_server_controller,))
