"""`DiscoveryRouteProvision`.

The control plane's route `{is}-discovery` exists with its default rule.
"""

from maserve.base.errors import Unavailable
from maserve.conditions import true_condition, unknown_condition
from maserve.inferenceserver.stock.ports import Ports
from maserve.inferenceserver.stock.teardown import discovery_route
from maserve.resource import names
from maserve.resource.metadata import key_of
from maserve.routing import MatchType, RewriteType, RouteConfig, Rule
from maserve.wire import api, v2


class DiscoveryRouteProvision:
    """Creates the route and keeps the server's default rule in it (behaviour 7.1)."""

    type = "DiscoveryRouteProvision"

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    async def retrieve(
        self, resource: v2.InferenceServer, previous: api.Condition
    ) -> api.Condition:
        now_s = self._ports.now_s()
        try:
            rules = await self._ports.routes.list_rules(None, discovery_route(key_of(resource)))
        except Unavailable as error:
            return unknown_condition(previous, str(error), "GetFailed", now_s)
        if default_rule(resource) in rules:
            return true_condition(previous, now_s)
        return unknown_condition(previous, "not created yet", "DiscoveryRouteMissing", now_s)

    async def run(self, resource: v2.InferenceServer, previous: api.Condition) -> api.Condition:
        now_s = self._ports.now_s()
        route = discovery_route(key_of(resource))
        config = RouteConfig(
            owner_name=resource.metadata.name,
            owner_uid=resource.metadata.uid,
            rules=(default_rule(resource),),
        )
        try:
            await self._ports.routes.create(None, route, config)
            await self._ports.routes.add_rules(None, route, default_rule(resource))
        except Unavailable as error:
            return unknown_condition(previous, str(error), "EnsureFailed", now_s)
        return true_condition(previous, now_s)


def default_rule(server: v2.InferenceServer) -> Rule:
    """Build the rule of the server itself: exactly `/{is}` to `/cluster/{is}`."""
    name = server.metadata.name
    return Rule(
        match_path=names.discovery_path(name),
        match_type=MatchType.EXACT,
        rewrite_path=names.traffic_path(name),
        rewrite_type=RewriteType.FULL_PATH,
        backend=names.endpoints_service(name),
    )
