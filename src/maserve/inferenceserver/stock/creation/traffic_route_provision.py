"""`TrafficRouteProvision`: every cluster has its route `{is}-traffic` with the default rule."""

from maserve.base.errors import Unavailable
from maserve.conditions import true_condition, unknown_condition
from maserve.inferenceserver.stock.ports import Ports
from maserve.inferenceserver.stock.teardown import traffic_route
from maserve.resource import names
from maserve.resource.metadata import key_of
from maserve.routing import MatchType, RewriteType, RouteConfig, Rule
from maserve.wire import api, v2


class TrafficRouteProvision:
    """Creates the routes; one cluster's failure does not stop the others, failures are listed."""

    type = "TrafficRouteProvision"

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    async def retrieve(
        self, resource: v2.InferenceServer, previous: api.Condition
    ) -> api.Condition:
        now_s = self._ports.now_s()
        try:
            missing = [
                target.cluster_id
                for target in resource.spec.cluster_targets
                if not await self._is_there(resource, target)
            ]
        except Unavailable as error:
            return unknown_condition(previous, str(error), "GetFailed", now_s)
        if not missing:
            return true_condition(previous, now_s)
        text = f"not created yet in: {', '.join(missing)}"
        return unknown_condition(previous, text, "TrafficRouteMissing", now_s)

    async def run(self, resource: v2.InferenceServer, previous: api.Condition) -> api.Condition:
        failures: list[str] = []
        for target in resource.spec.cluster_targets:
            try:
                await self._ensure(resource, target)
            except Unavailable as error:
                failures.append(f"{target.cluster_id}: {error}")
        if failures:
            text = "; ".join(failures)
            return unknown_condition(previous, text, "EnsureFailed", self._ports.now_s())
        return true_condition(previous, self._ports.now_s())

    async def _is_there(self, server: v2.InferenceServer, target: v2.ClusterTarget) -> bool:
        route = traffic_route(key_of(server), target)
        return default_rule(server) in await self._ports.routes.list_rules(target, route)

    async def _ensure(self, server: v2.InferenceServer, target: v2.ClusterTarget) -> None:
        route = traffic_route(key_of(server), target)
        rule = default_rule(server)
        await self._ports.routes.create(target, route, RouteConfig(rules=(rule,)))
        await self._ports.routes.add_rules(target, route, rule)


def default_rule(server: v2.InferenceServer) -> Rule:
    """Build the rule of the server itself: exactly `/cluster/{is}` to `/v2`."""
    name = server.metadata.name
    return Rule(
        match_path=names.traffic_path(name),
        match_type=MatchType.EXACT,
        rewrite_path="/v2",
        rewrite_type=RewriteType.FULL_PATH,
        backend=names.inference_service(name),
    )
