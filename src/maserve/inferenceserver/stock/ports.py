"""What the stock actors work with, in one value."""

from dataclasses import dataclass

from maserve.backends import Backend, BackendRegistry
from maserve.base.clock import Clock
from maserve.conditions import ConditionActor
from maserve.endpoints import Provider, Publisher
from maserve.modelconfig import ModelConfigProvider
from maserve.routing import Manager, RouteId, Rule
from maserve.wire import v2


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """Every outward port of the InferenceServer controller."""

    backends: BackendRegistry
    model_config: ModelConfigProvider
    routes: Manager
    provider: Provider
    publisher: Publisher
    clock: Clock

    def backend(self, server: v2.InferenceServer) -> Backend:
        """Return the backend of the server's framework. Raises `Unsupported` when there is none."""
        return self.backends.get(server.spec.backend_type)

    async def is_routed(
        self,
        target: v2.ClusterTarget | None,
        route: RouteId,
        rule: Rule,
        *,
        was_live: bool = False,
    ) -> bool:
        """Tell whether the data plane serves the rule; of one that `was_live`, whether it is kept.

        A route is not live for a moment whenever another rule of it changes.
        """
        rules = await self.routes.list_rules(target, route)
        return rule in rules and (was_live or await self.routes.is_live(target, route))

    def now_s(self) -> float:
        """Return the wall time in unix seconds, as conditions keep it."""
        return self.clock.now().timestamp()


Actor = ConditionActor[v2.InferenceServer]
"""One step over an InferenceServer."""
