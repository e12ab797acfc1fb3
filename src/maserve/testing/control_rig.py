"""Both controllers on fake ports and a clock that is moved by hand, one pass at a time."""

from collections.abc import Sequence

from maserve.backends import BackendRegistry
from maserve.base.keys import ClusterId, Key, ModelName, ReplicaName
from maserve.base.signals import Signal
from maserve.deployment import DeploymentController, SimpleRegistrar
from maserve.deployment.stock import Ports, RolloutSettings, StockPlugin
from maserve.deployment.stock.site import Site, site_of
from maserve.gates import ModelGate
from maserve.inferenceserver import InferenceServerController
from maserve.inferenceserver import stock as server_stock
from maserve.inferenceserver.stock.creation import (
    discovery_route_provision,
    traffic_route_provision,
)
from maserve.inferenceserver.stock.teardown import discovery_route, traffic_route
from maserve.modelconfig import Entry, Phase
from maserve.resource.metadata import key_of
from maserve.routing import RouteConfig
from maserve.runtime import Again, Outcome
from maserve.store import Store
from maserve.testing.artifacts_fake import FakeArtifacts
from maserve.testing.backend_fake import FakeBackend
from maserve.testing.builders import DEPLOYMENT, SERVER, a_deployment, a_target, an_inference_server
from maserve.testing.clock import FakeClock
from maserve.testing.endpoints_fake import FakeProvider, FakePublisher
from maserve.testing.modelconfig_fake import FakeModelConfigProvider
from maserve.testing.probe_fake import FakeTrafficProbe
from maserve.testing.recorder import FakeRecorder
from maserve.testing.routing_fake import FakeRoutingManager
from maserve.testing.world import FakeWorld
from maserve.wire import v2

_PASSES = 300
"""More than any story needs: a controller that still moves then does not settle."""


class ControlRig:
    """Every fake port, the values that bind them, and the two controllers over them.

    Replicas start in `world.start_s` and load in `world.load_s` of `clock`, which stands still
    until `advance`.
    """

    def __init__(
        self, store: Store, clock: FakeClock, *, settings: RolloutSettings | None = None
    ) -> None:
        self.store = store
        self.clock = clock
        self.recorder = FakeRecorder()
        self.model_config = FakeModelConfigProvider()
        self.routes = FakeRoutingManager()
        self.probe = FakeTrafficProbe(self.routes)
        self.provider = FakeProvider()
        self.publisher = FakePublisher()
        self.artifacts = FakeArtifacts()
        self.world = FakeWorld(
            clock=clock, changed=Signal(), read_entries=self.model_config.find_entries
        )
        self.backend = FakeBackend(self.world)
        self.backends = BackendRegistry({v2.BACKEND_TYPE_TRITON: self.backend})
        self.settings = settings or RolloutSettings()
        self.ports = self._deployment_ports()
        self.server_ports = self._server_ports()
        self.plugin = StockPlugin(self.ports)
        self.registrar = SimpleRegistrar()
        self.registrar.register_plugin("TARGET_TYPE_INFERENCE_SERVER", "", self.plugin)
        self.deployments = DeploymentController(
            store=store, registrar=self.registrar, recorder=self.recorder, clock=clock
        )
        self.servers = InferenceServerController(
            store=store,
            plugin=server_stock.StockPlugin(self.server_ports),
            recorder=self.recorder,
            clock=clock,
        )

    @property
    def writes(self) -> list[tuple[str, ...]]:
        """Every write to the world so far, port by port."""
        ports = (self.model_config, self.routes, self.publisher, self.backend)
        return [call for port in ports for call in port.calls]

    def advance(self, seconds: float) -> None:
        """Let time pass for replicas and controllers."""
        self.world.settle()
        self.clock.advance(seconds)
        self.world.settle()

    async def provide(
        self, name: str = SERVER.name, *, clusters: Sequence[str] = ("c1",), replicas: int = 2
    ) -> v2.InferenceServer:
        """Have a server that serves in every cluster, as its controller would leave it."""
        wanted = an_inference_server(name, clusters=clusters, replicas=replicas, serving=clusters)
        server = await self.store.create(wanted)
        server.status.CopyFrom(wanted.status)
        server.status.state = v2.INFERENCE_SERVER_STATE_SERVING
        server = await self.store.update_status(server)
        rule = discovery_route_provision.default_rule(server)
        await self.routes.create(None, discovery_route(key_of(server)), RouteConfig(rules=(rule,)))
        for cluster in clusters:
            await self.provide_in(server, a_target(cluster))
        self.advance(self.world.start_s)
        return server

    async def provide_in(self, server: v2.InferenceServer, target: v2.ClusterTarget) -> None:
        """Have the server's replicas, config and route in one more cluster."""
        key = key_of(server)
        rule = traffic_route_provision.default_rule(server)
        await self.model_config.create_model_config(key, target, labels={}, annotations={})
        await self.routes.create(target, traffic_route(key, target), RouteConfig(rules=(rule,)))
        await self.backend.create_server(server, target)

    async def list_model(
        self,
        model: str,
        phase: str = Phase.SERVING,
        *,
        cluster: str = "c1",
        deployment: str = DEPLOYMENT.name,
        replica: str = "",
        loaded: bool = True,
    ) -> None:
        """Have a model in a cluster's config, and loaded wherever that wants it."""
        entry = Entry(
            name=ModelName(model),
            storage_path=f"file:///models/{model}/",
            deployment_name=deployment,
            phase=phase,
            canary_pod=ReplicaName(replica),
        )
        await self.model_config.add_model_to_config(SERVER, a_target(cluster), entry)
        self.advance(self.world.load_s if loaded else 0.0)

    async def serve(self, model: str, *, cluster: str = "c1", deployment: str = "d") -> None:
        """Have a cluster serve a model: listed, loaded, routed, and known to the gateway."""
        await self.list_model(model, cluster=cluster, deployment=deployment)
        site = self.site(cluster, deployment)
        await site.route_to(ModelName(model), "Seed")

    def site(self, cluster: str = "c1", deployment: str = "d") -> Site:
        """Return one Deployment's place in one cluster."""
        return site_of(self.ports, a_deployment(deployment), a_target(cluster))

    def entries(
        self, cluster: str = "c1", *, deployment: str = DEPLOYMENT.name, server: Key = SERVER
    ) -> dict[str, str]:
        """Return the phases of a Deployment's entries by model; empty without a config."""
        found = self.model_config.find_entries(server, ClusterId(cluster)) or ()
        own = [entry for entry in found if entry.deployment_name == deployment]
        return {str(entry.name): str(entry.phase) for entry in own}

    async def pass_deployment(self, key: Key = DEPLOYMENT) -> Outcome:
        """Make one pass over a Deployment."""
        return await self.deployments.reconcile(key)

    async def settle_deployment(self, key: Key = DEPLOYMENT) -> Outcome:
        """Make passes until nothing moves, without letting time pass."""
        for _ in range(_PASSES):
            outcome = await self.deployments.reconcile(key)
            if not isinstance(outcome, Again):
                return outcome
        raise AssertionError(f"Deployment {key} does not settle")

    async def settle_server(self, key: Key = SERVER) -> Outcome:
        """Make passes over a server until nothing moves, without letting time pass."""
        for _ in range(_PASSES):
            outcome = await self.servers.reconcile(key)
            if not isinstance(outcome, Again):
                return outcome
        raise AssertionError(f"InferenceServer {key} does not settle")

    async def run_deployment(self, key: Key = DEPLOYMENT, *, rounds: int = 20) -> None:
        """Let passes and time alternate: `rounds` times a second passes."""
        for _ in range(rounds):
            await self.settle_deployment(key)
            self.advance(1.0)
        await self.settle_deployment(key)

    async def run_server(self, key: Key = SERVER, *, rounds: int = 20) -> None:
        """Let passes over a server and time alternate: `rounds` times a second passes."""
        for _ in range(rounds):
            await self.settle_server(key)
            self.advance(1.0)
        await self.settle_server(key)

    async def deployment(self, key: Key = DEPLOYMENT) -> v2.Deployment:
        """Return the stored Deployment."""
        return await self.store.get(v2.Deployment, key)

    async def server(self, key: Key = SERVER) -> v2.InferenceServer:
        """Return the stored server."""
        return await self.store.get(v2.InferenceServer, key)

    def _deployment_ports(self) -> Ports:
        return Ports(
            store=self.store,
            backends=self.backends,
            model_config=self.model_config,
            routes=self.routes,
            artifacts=self.artifacts,
            probe=self.probe,
            gate=ModelGate(model_config=self.model_config, clock=self.clock, start_grace_s=60.0),
            recorder=self.recorder,
            clock=self.clock,
            settings=self.settings,
        )

    def _server_ports(self) -> server_stock.Ports:
        return server_stock.Ports(
            backends=self.backends,
            model_config=self.model_config,
            routes=self.routes,
            provider=self.provider,
            publisher=self.publisher,
            clock=self.clock,
        )
