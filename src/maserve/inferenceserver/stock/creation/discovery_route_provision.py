"""`DiscoveryRouteProvision`.

The gateway serves the control plane's route `{is}-discovery` with its default rule.
"""

from maserve.base.errors import Unavailable
from maserve.conditions import TRUE, true_condition, unknown_condition
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
            is_routed = await self._ports.is_routed(
                None,
                discovery_route(key_of(resource)),
                default_rule(resource),
                was_live=previous.status == TRUE,
            )
        except Unavailable as error:
            return unknown_condition(previous, str(error), "GetFailed", now_s)
        if is_routed:
            return true_condition(previous, now_s)
        return unknown_condition(previous, "not served yet", "DiscoveryRouteMissing", now_s)

    async def run(self, resource: v2.InferenceServer, previous: api.Condition) -> api.Condition:
        now_s = self._ports.now_s()
        route, rule = discovery_route(key_of(resource)), default_rule(resource)
        config = RouteConfig(
            owner_name=resource.metadata.name, owner_uid=resource.metadata.uid, rules=(rule,)
        )
        try:
            await self._ports.routes.create(None, route, config)
            await self._ports.routes.add_rules(None, route, rule)
            is_routed = await self._ports.is_routed(None, route, rule)
        except Unavailable as error:
            return unknown_condition(previous, str(error), "EnsureFailed", now_s)
        if is_routed:
            return true_condition(previous, now_s)
        return unknown_condition(previous, "not served yet", "DiscoveryRouteMissing", now_s)


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
