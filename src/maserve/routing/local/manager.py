"""The routing Manager on one Envoy."""

from collections.abc import Callable

from maserve.base.errors import NotFound
from maserve.base.keys import ClusterId
from maserve.envoy import DataPlane, RouteRef, RouteRule, RouteState
from maserve.routing.types import MatchType, RewriteType, RouteConfig, RouteId, Rule
from maserve.wire import v2

Rules = tuple[Rule, ...]


class LocalRoutingManager:
    """Keeps routes in the data plane's own state; every write returns once Envoy runs it.

    The order in which routes are created decides who owns a path that two routes claim. Owners are
    not kept: nothing collects routes here, the deletion step removes them.
    """

    def __init__(self, plane: DataPlane) -> None:
        self._plane = plane

    async def create(
        self, target: v2.ClusterTarget | None, route: RouteId, config: RouteConfig
    ) -> None:
        def keep(known: RouteState | None) -> tuple[RouteRule, ...]:
            return known.rules if known else tuple(map(_to_envoy, config.rules))

        await self._plane.change_route(_ref(target, route), keep)

    async def exists(self, target: v2.ClusterTarget | None, route: RouteId) -> bool:
        return self._plane.find_route(_ref(target, route)) is not None

    async def delete(self, target: v2.ClusterTarget | None, route: RouteId) -> None:
        await self._plane.remove_route(_ref(target, route))

    async def add_rules(
        self, target: v2.ClusterTarget | None, route: RouteId, *rules: Rule
    ) -> None:
        await self._change(target, route, lambda known: with_rules(known, rules))

    async def remove_rules(
        self, target: v2.ClusterTarget | None, route: RouteId, *match_paths: str
    ) -> None:
        if await self.exists(target, route):
            await self._change(target, route, lambda known: without_rules(known, match_paths))

    async def list_rules(self, target: v2.ClusterTarget | None, route: RouteId) -> tuple[Rule, ...]:
        known = self._plane.find_route(_ref(target, route))
        return tuple(map(_from_envoy, known.rules)) if known else ()

    async def is_live(self, target: v2.ClusterTarget | None, route: RouteId) -> bool:
        return await self._plane.is_route_live(_ref(target, route))

    async def _change(
        self,
        target: v2.ClusterTarget | None,
        route: RouteId,
        change: Callable[[Rules], Rules],
    ) -> None:
        def apply(known: RouteState | None) -> tuple[RouteRule, ...]:
            if known is None:
                raise NotFound("route", route.key)
            return tuple(map(_to_envoy, change(tuple(map(_from_envoy, known.rules)))))

        await self._plane.change_route(_ref(target, route), apply)


def with_rules(known: Rules, rules: Rules) -> Rules:
    """Return the rules with those of the same match path replaced in place, the others appended."""
    merged = {rule.match_path: rule for rule in known}
    return tuple({**merged, **{rule.match_path: rule for rule in rules}}.values())


def without_rules(known: Rules, match_paths: tuple[str, ...]) -> Rules:
    """Return the rules without those of exactly these match paths."""
    return tuple(rule for rule in known if rule.match_path not in match_paths)


def _ref(target: v2.ClusterTarget | None, route: RouteId) -> RouteRef:
    """Return the route's place; the target names the cluster, as everywhere."""
    cluster = ClusterId(target.cluster_id) if target is not None else None
    return RouteRef(cluster=cluster, namespace=route.key.namespace, name=route.key.name)


def _to_envoy(rule: Rule) -> RouteRule:
    return RouteRule(
        match_path=rule.match_path,
        is_exact=rule.match_type is MatchType.EXACT,
        rewrite_path=rule.rewrite_path,
        is_full_rewrite=rule.rewrite_type is RewriteType.FULL_PATH,
        service=rule.backend,
        service_port=rule.backend_port,
    )


def _from_envoy(rule: RouteRule) -> Rule:
    return Rule(
        match_path=rule.match_path,
        match_type=MatchType.EXACT if rule.is_exact else MatchType.PREFIX,
        rewrite_path=rule.rewrite_path,
        rewrite_type=RewriteType.FULL_PATH if rule.is_full_rewrite else RewriteType.PREFIX,
        backend=rule.service,
        backend_port=rule.service_port,
    )
