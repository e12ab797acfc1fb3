"""A Deployment's rule on the control plane's discovery route."""

from dataclasses import dataclass

from maserve.base.errors import Error
from maserve.base.keys import Key
from maserve.deployment.keys import server_name
from maserve.deployment.stock.ports import Ports
from maserve.deployment.stock.site import Trouble
from maserve.resource import names
from maserve.routing import MatchType, RewriteType, RouteId, Rule
from maserve.wire import v2


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoveryRule:
    """Reads and changes the rule `/{is}/{d}`. Every method raises `Trouble` only."""

    ports: Ports
    server: Key
    deployment_name: str

    async def is_live(self) -> bool:
        """Tell whether the gateway has acknowledged the rule."""
        try:
            rules = await self.ports.routes.list_rules(None, self._route())
            return self._rule() in rules and await self.ports.routes.is_live(None, self._route())
        except Error as error:
            raise Trouble("DiscoveryRouteStatusCheckFailed", str(error)) from error

    async def is_there(self) -> bool:
        """Tell whether the rule is stored, acknowledged or not."""
        try:
            rules = await self.ports.routes.list_rules(None, self._route())
        except Error as error:
            raise Trouble("DiscoveryRouteStatusCheckFailed", str(error)) from error
        return any(rule.match_path == self._rule().match_path for rule in rules)

    async def find_answering_model(self) -> str | None:
        """Return the model that answers at the gateway; None when that cannot be told."""
        asking = self.ports.probe.find_answering_model(None, self.server, self.deployment_name)
        try:
            return await asking
        except Error as error:
            raise Trouble("TrafficProbeFailed", str(error)) from error

    async def add(self) -> None:
        try:
            await self.ports.routes.add_rules(None, self._route(), self._rule())
        except Error as error:
            raise Trouble("DiscoveryRouteUpsertFailed", str(error)) from error

    async def remove(self) -> None:
        try:
            await self.ports.routes.remove_rules(None, self._route(), self._rule().match_path)
        except Error as error:
            raise Trouble("DiscoveryRouteRemovalFailed", str(error)) from error

    def _route(self) -> RouteId:
        return RouteId.discovery(self.server)

    def _rule(self) -> Rule:
        return Rule(
            match_path=names.discovery_path(self.server.name, self.deployment_name),
            match_type=MatchType.PREFIX,
            rewrite_path=names.traffic_path(self.server.name, self.deployment_name),
            rewrite_type=RewriteType.PREFIX,
            backend=names.endpoints_service(self.server.name),
        )


def discovery_of(ports: Ports, deployment: v2.Deployment, server: str = "") -> DiscoveryRule:
    """Build a Deployment's rule on a server's discovery route; by default where it is served."""
    return DiscoveryRule(
        ports=ports,
        server=Key(deployment.metadata.namespace, server or server_name(deployment)),
        deployment_name=deployment.metadata.name,
    )
