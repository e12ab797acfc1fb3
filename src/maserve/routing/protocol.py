"""The port to traffic and discovery routes (guide: routing Manager; behaviour 7.3)."""

from typing import Protocol

from maserve.base.keys import Key
from maserve.routing.types import RouteConfig, RouteId, Rule
from maserve.wire import v2


class Manager(Protocol):
    """Routes made of rules keyed by match path.

    `target` names the cluster the route lives in, None the control plane. Raises `Unavailable` for
    what a retry may clear.
    """

    async def create(
        self, target: v2.ClusterTarget | None, route: RouteId, config: RouteConfig
    ) -> None:
        """Make the route; one that is there already stays as it is."""
        ...

    async def exists(self, target: v2.ClusterTarget | None, route: RouteId) -> bool:
        """Tell whether the route is there."""
        ...

    async def delete(self, target: v2.ClusterTarget | None, route: RouteId) -> None:
        """Remove the route with all rules; absent is success."""
        ...

    async def add_rules(
        self, target: v2.ClusterTarget | None, route: RouteId, *rules: Rule
    ) -> None:
        """Replace rules of the same match path, append the others; equal: no write.

        Raises `NotFound` when the route is not there.
        """
        ...

    async def remove_rules(
        self, target: v2.ClusterTarget | None, route: RouteId, *match_paths: str
    ) -> None:
        """Remove rules by exact path; a missing route or rule is success."""
        ...

    async def list_rules(self, target: v2.ClusterTarget | None, route: RouteId) -> tuple[Rule, ...]:
        """Return the rules in their order, empty for a missing route."""
        ...

    async def is_live(self, target: v2.ClusterTarget | None, route: RouteId) -> bool:
        """Tell whether the data plane has acknowledged the route as it is stored.

        A step that claims traffic moved asks this, not only `list_rules` (ADR 0013).
        A missing route is live once the data plane serves nothing of it.
        """
        ...


class TrafficProbe(Protocol):
    """Judges a data plane from outside (ADR 0013): a request tells who answers."""

    async def find_answering_model(
        self, target: v2.ClusterTarget | None, server: Key, deployment: str
    ) -> str | None:
        """Return the model that answers a Deployment's requests in a cluster.

        Without a target: at the gateway. Empty when there is an answer but no model's; None when it
        cannot be asked from here.
        """
        ...
