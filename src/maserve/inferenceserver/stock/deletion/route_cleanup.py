"""`RouteCleanup`: no route leads to the server any more."""

from maserve.base.errors import Unavailable
from maserve.conditions import true_condition, unknown_condition
from maserve.inferenceserver.clusters import known_targets
from maserve.inferenceserver.stock.ports import Ports
from maserve.inferenceserver.stock.teardown import discovery_route, traffic_route
from maserve.resource.metadata import key_of
from maserve.wire import api, v2


class RouteCleanup:
    """Removes the discovery route, the published endpoints, then every cluster's traffic route."""

    type = "RouteCleanup"

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    async def retrieve(
        self, resource: v2.InferenceServer, previous: api.Condition
    ) -> api.Condition:
        now_s = self._ports.now_s()
        key = key_of(resource)
        routes = self._ports.routes
        try:
            if await routes.exists(None, discovery_route(key)):
                text = "the discovery route is still there"
                return unknown_condition(previous, text, "DiscoveryRouteStillExists", now_s)
            left = [
                target.cluster_id
                for target in known_targets(resource)
                if await routes.exists(target, traffic_route(key, target))
            ]
        except Unavailable as error:
            return unknown_condition(previous, str(error), "GetFailed", now_s)
        if not left:
            return true_condition(previous, now_s)
        text = f"traffic routes are still there in: {', '.join(left)}"
        return unknown_condition(previous, text, "TrafficRouteStillExists", now_s)

    async def run(self, resource: v2.InferenceServer, previous: api.Condition) -> api.Condition:
        key = key_of(resource)
        try:
            await self._ports.routes.delete(None, discovery_route(key))
            await self._ports.publisher.delete(resource)
            for target in known_targets(resource):
                await self._ports.routes.delete(target, traffic_route(key, target))
        except Unavailable as error:
            return unknown_condition(previous, str(error), "DeleteFailed", self._ports.now_s())
        return true_condition(previous, self._ports.now_s())
