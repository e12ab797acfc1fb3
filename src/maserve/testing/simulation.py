"""The whole control plane on a fake world in virtual time (run it under `looptime`).

The world, the store and everything the ports keep live on while control planes come and go.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from copy import deepcopy
from dataclasses import InitVar, dataclass, field
from typing import Any

from prometheus_client import CollectorRegistry

from maserve.backends import BackendRegistry
from maserve.base.clock import Clock
from maserve.base.keys import ClusterId, Key
from maserve.base.tasks import run_until
from maserve.cmd import serving
from maserve.cmd.parts import Parts, ServerChanged
from maserve.cmd.wiring import Module, build_container, invoke_all
from maserve.deployment.stock import ArtifactCheck, RolloutSettings
from maserve.endpoints import Provider, Publisher
from maserve.modelconfig import ModelConfigProvider
from maserve.resource.kinds import R
from maserve.resource.metadata import key_of
from maserve.routing import Manager as RoutingManager
from maserve.routing import TrafficProbe
from maserve.runtime import AlwaysLeader, EventRecorder, Manager, ManagerSettings
from maserve.store import Store
from maserve.testing.artifacts_fake import FakeArtifacts
from maserve.testing.backend_fake import FakeBackend
from maserve.testing.clock import LoopClock
from maserve.testing.endpoints_fake import FakeProvider, FakePublisher
from maserve.testing.modelconfig_fake import FakeModelConfigProvider
from maserve.testing.probe_fake import FakeTrafficProbe
from maserve.testing.recorder import FakeRecorder
from maserve.testing.routing_fake import FakeRoutingManager
from maserve.testing.store_fake import FakeStore
from maserve.testing.taps import Crash, Tap
from maserve.testing.world import FakeWorld
from maserve.wire import v2

SERVING = (
    serving.RUNTIME,
    serving.DEPLOYMENT_STOCK_PLUGIN,
    serving.DEPLOYMENT,
    serving.INFERENCE_SERVER_STOCK_PLUGIN,
    serving.INFERENCE_SERVER,
)
"""The stock serving modules: the same ones a real control plane runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A world without a control plane, at one moment of its clock; it can be lived often."""

    rest: "Simulation"
    at_s: float

    async def relive(self) -> "Simulation":
        """Return a simulation like it, once the loop's time has come to that moment."""
        sim = deepcopy(self.rest, {id(self.rest.modules): self.rest.modules})
        await sim.clock.sleep(self.at_s - sim.clock.monotonic())
        return sim


@dataclass(kw_only=True)
class Simulation:
    """A world that outlives its control planes. `seed` fixes every choice made at random.

    An extension adds its own to `modules`; the fake ports are there already and can be decorated.
    `another_store` stands in for the store in memory, whose objects alone can be peeked at.
    """

    seed: int = 0
    settings: RolloutSettings = field(default_factory=RolloutSettings)
    clock: Clock = field(default_factory=LoopClock)
    changed: ServerChanged = field(default_factory=ServerChanged)
    recorder: FakeRecorder = field(default_factory=FakeRecorder)
    artifacts: FakeArtifacts = field(default_factory=FakeArtifacts)
    modules: Sequence[Module] = SERVING
    another_store: InitVar[Store | None] = None

    def __post_init__(self, another_store: Store | None) -> None:
        self.rng = random.Random(self.seed)  # noqa: S311 - a simulation must repeat
        self.fake_store = FakeStore(clock=self.clock, rng=self.rng)
        self.store: Store = another_store or self.fake_store
        self.model_config = FakeModelConfigProvider(self._config_changed)
        self.routes = FakeRoutingManager()
        self.probe = FakeTrafficProbe(self.routes)
        self.provider = FakeProvider()
        self.publisher = FakePublisher()
        self.world = FakeWorld(
            clock=self.clock, changed=self.changed, read_entries=self.model_config.find_entries
        )
        self.backend = FakeBackend(self.world)
        self.listed: set[tuple[Key, ClusterId, str, str]] = set()
        self.routed: set[tuple[Key, ClusterId, str, str]] = set()

    async def run(self, tap: Tap, story: Callable[[], Awaitable[None]], *, planes: int = 1) -> None:
        """Run a control plane, every write of it through `tap`, until the story has been told.

        With `planes` 2, two run side by side and neither knows of the other. Raises `Crash` when
        the tap killed it.
        """
        told = asyncio.Event()

        async def tell() -> None:
            await story()
            told.set()

        managers = [await self._manager(tap) for _ in range(planes)]
        try:
            await run_until(told, *(each.run() for each in managers), self.world.run(), tell())
        except BaseExceptionGroup as group:
            if tap.dead:
                raise Crash from group
            raise

    async def _manager(self, tap: Tap) -> Manager:
        container = build_container(self.modules, self._ports(tap), wanted=(Parts,))
        await invoke_all(container, self.modules)
        parts = await container.get(Parts)
        return Manager(
            clients=parts.clients,
            sources=parts.sources,
            workers=parts.workers,
            leadership=AlwaysLeader(),
            settings=ManagerSettings(),
        )

    async def until(self, kind: type[R], key: Key, is_so: Callable[[R | None], bool]) -> R | None:
        """Return the object once `is_so`; raises TimeoutError after a virtual hour."""
        async with asyncio.timeout(3600):
            while True:
                found = await self.store.find(kind, key)
                if is_so(found):
                    return found
                await self.clock.sleep(0.05)

    def moment(self) -> "Moment":
        """Return the world as a crash right now would leave it."""
        apart = {id(self.changed): type(self.changed)(), id(self.modules): self.modules}
        rest = deepcopy(self, apart)
        return Moment(rest=rest, at_s=self.clock.monotonic())

    def deployments(self) -> tuple[v2.Deployment, ...]:
        """Return every Deployment as it is stored."""
        return self.fake_store.peek_all(v2.Deployment)

    def server(self, key: Key) -> v2.InferenceServer | None:
        """Return one InferenceServer as it is stored, None when there is none."""
        found = (s for s in self.fake_store.peek_all(v2.InferenceServer) if key_of(s) == key)
        return next(found, None)

    def _config_changed(self, server: Key, _cluster: ClusterId) -> None:
        self.world.poke()
        self.changed.announce(server)

    def _ports(self, tap: Tap) -> dict[type[Any], object]:
        """Return what the control plane sees of the world, its writes through the tap."""
        return {
            Clock: self.clock,
            random.Random: self.rng,
            CollectorRegistry: CollectorRegistry(),
            ServerChanged: self.changed,
            Parts: Parts(),
            Store: tap.on(self.store),
            EventRecorder: self.recorder,
            BackendRegistry: BackendRegistry({v2.BACKEND_TYPE_TRITON: tap.on(self.backend)}),
            ModelConfigProvider: tap.on(self.model_config),
            RoutingManager: tap.on(self.routes),
            TrafficProbe: self.probe,
            Provider: self.provider,
            Publisher: tap.on(self.publisher),
            ArtifactCheck: self.artifacts,
            RolloutSettings: self.settings,
        }
