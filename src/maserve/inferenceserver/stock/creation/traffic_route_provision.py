"""`TrafficRouteProvision`: every cluster serves its route `{is}-traffic` with the default rule."""

from maserve.base.errors import Unavailable
from maserve.conditions import TRUE, true_condition, unknown_condition
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
        was_live = previous.status == TRUE
        try:
            missing = [
                target.cluster_id
                for target in resource.spec.cluster_targets
                if not await self._is_routed(resource, target, was_live=was_live)
            ]
        except Unavailable as error:
            return unknown_condition(previous, str(error), "GetFailed", self._ports.now_s())
        return self._judge(previous, missing)

    async def run(self, resource: v2.InferenceServer, previous: api.Condition) -> api.Condition:
        failures: list[str] = []
        missing: list[str] = []
        for target in resource.spec.cluster_targets:
            try:
                await self._ensure(resource, target)
                if not await self._is_routed(resource, target):
                    missing.append(target.cluster_id)
            except Unavailable as error:
                failures.append(f"{target.cluster_id}: {error}")
        if failures:
            text = "; ".join(failures)
            return unknown_condition(previous, text, "EnsureFailed", self._ports.now_s())
        return self._judge(previous, missing)

    def _judge(self, previous: api.Condition, missing: list[str]) -> api.Condition:
        now_s = self._ports.now_s()
        if not missing:
            return true_condition(previous, now_s)
        text = f"not served yet in: {', '.join(missing)}"
        return unknown_condition(previous, text, "TrafficRouteMissing", now_s)

    async def _is_routed(
        self, server: v2.InferenceServer, target: v2.ClusterTarget, *, was_live: bool = False
    ) -> bool:
        route, rule = traffic_route(key_of(server), target), default_rule(server)
        return await self._ports.is_routed(target, route, rule, was_live=was_live)

    async def _ensure(self, server: v2.InferenceServer, target: v2.ClusterTarget) -> None:
        route, rule = traffic_route(key_of(server), target), default_rule(server)
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
