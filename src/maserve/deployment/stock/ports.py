"""What the stock actors work with, in one value."""

from dataclasses import dataclass
from typing import Protocol

from maserve.backends import BackendRegistry
from maserve.base.clock import Clock
from maserve.conditions import ConditionActor
from maserve.deployment.stock.settings import RolloutSettings
from maserve.gates import ModelGate
from maserve.modelconfig import ModelConfigProvider
from maserve.routing import Manager, TrafficProbe
from maserve.runtime import EventRecorder
from maserve.store import Store
from maserve.wire import v2


class ArtifactCheck(Protocol):
    """A cheap look at where a model's files should be; the files are never touched here."""

    async def check(self, storage_path: str) -> None:
        """Return when something is there, or when it cannot be told from here.

        Raises `NotFound` when there is certainly nothing, `Invalid` for a path nobody can read.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """Every outward port of the Deployment controller's stock plugin."""

    store: Store
    backends: BackendRegistry
    model_config: ModelConfigProvider
    routes: Manager
    probe: TrafficProbe
    artifacts: ArtifactCheck
    gate: ModelGate
    recorder: EventRecorder
    clock: Clock
    settings: RolloutSettings

    def now_s(self) -> float:
        """Return the wall time in unix seconds, as conditions keep it."""
        return self.clock.now().timestamp()


Actor = ConditionActor[v2.Deployment]
"""One step over a Deployment."""
