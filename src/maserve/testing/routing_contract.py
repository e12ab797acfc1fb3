"""What every routing Manager does, as tests. Subclass `RoutingContract` and give it a manager."""

# ruff: noqa: S101 - assertions are what a contract is made of

from dataclasses import replace

import pytest

from maserve.base.errors import NotFound
from maserve.base.keys import ClusterId, Key
from maserve.routing import Manager, MatchType, RewriteType, RouteConfig, RouteId, Rule
from maserve.wire import v2

TARGET = v2.ClusterTarget(cluster_id="east")
ROUTE = RouteId(cluster=ClusterId("east"), key=Key("team", "demo-traffic"))
OTHER = RouteId(cluster=ClusterId("east"), key=Key("team", "other-traffic"))
DISCOVERY = RouteId(cluster=None, key=Key("team", "demo-discovery"))


def a_rule(path: str = "/cluster/demo/dep", model: str = "m1") -> Rule:
    """Build a deployment's rule."""
    return Rule(
        match_path=path,
        match_type=MatchType.PREFIX,
        rewrite_path=f"/v2/models/{model}",
        rewrite_type=RewriteType.PREFIX,
        backend="demo-inference-service",
    )


def a_default_rule(path: str = "/cluster/demo") -> Rule:
    """Build a server's rule."""
    return Rule(
        match_path=path,
        match_type=MatchType.EXACT,
        rewrite_path="/v2",
        rewrite_type=RewriteType.FULL_PATH,
        backend="demo-inference-service",
    )


class RoutingContract:
    """The contract. The fixture `manager` is the implementation, with cluster `east` reachable."""

    @pytest.fixture
    def manager(self) -> Manager:
        """Give the implementation under test."""
        raise NotImplementedError("the class that inherits the suite has a fixture `manager`")

    async def test_created_route_exists_with_its_rules(self, manager: Manager) -> None:
        await manager.create(TARGET, ROUTE, RouteConfig(rules=(a_default_rule(), a_rule())))
        assert await manager.exists(TARGET, ROUTE)
        assert await manager.list_rules(TARGET, ROUTE) == (a_default_rule(), a_rule())

    async def test_route_is_absent_before_it_is_created(self, manager: Manager) -> None:
        assert not await manager.exists(TARGET, ROUTE)
        assert await manager.list_rules(TARGET, ROUTE) == ()

    async def test_creating_again_keeps_the_rules(self, manager: Manager) -> None:
        await manager.create(TARGET, ROUTE, RouteConfig())
        await manager.add_rules(TARGET, ROUTE, a_rule())
        await manager.create(TARGET, ROUTE, RouteConfig(rules=(a_default_rule(),)))
        assert await manager.list_rules(TARGET, ROUTE) == (a_rule(),)

    async def test_adding_replaces_the_same_path_in_place(self, manager: Manager) -> None:
        await manager.create(TARGET, ROUTE, RouteConfig(rules=(a_rule(), a_default_rule())))
        await manager.add_rules(TARGET, ROUTE, a_rule(model="m2"))
        assert await manager.list_rules(TARGET, ROUTE) == (a_rule(model="m2"), a_default_rule())

    async def test_adding_appends_other_paths(self, manager: Manager) -> None:
        await manager.create(TARGET, ROUTE, RouteConfig(rules=(a_default_rule(),)))
        added = a_rule(path="/cluster/demo/two")
        await manager.add_rules(TARGET, ROUTE, a_rule(), added)
        assert await manager.list_rules(TARGET, ROUTE) == (a_default_rule(), a_rule(), added)

    async def test_adding_to_a_missing_route_is_not_found(self, manager: Manager) -> None:
        with pytest.raises(NotFound):
            await manager.add_rules(TARGET, ROUTE, a_rule())
        assert not await manager.exists(TARGET, ROUTE)

    async def test_rules_go_by_exact_path_only(self, manager: Manager) -> None:
        longer = a_rule(path="/cluster/demo/dep-2")
        await manager.create(TARGET, ROUTE, RouteConfig(rules=(a_rule(), longer)))
        await manager.remove_rules(TARGET, ROUTE, "/cluster/demo/dep", "/cluster/demo/none")
        assert await manager.list_rules(TARGET, ROUTE) == (longer,)

    async def test_removing_from_a_missing_route_is_success(self, manager: Manager) -> None:
        await manager.remove_rules(TARGET, ROUTE, "/cluster/demo/dep")
        assert not await manager.exists(TARGET, ROUTE)

    async def test_deleted_route_is_gone_and_deleting_again_is_success(
        self, manager: Manager
    ) -> None:
        await manager.create(TARGET, ROUTE, RouteConfig(rules=(a_rule(),)))
        await manager.delete(TARGET, ROUTE)
        await manager.delete(TARGET, ROUTE)
        assert not await manager.exists(TARGET, ROUTE)
        assert await manager.list_rules(TARGET, ROUTE) == ()

    async def test_routes_do_not_mix(self, manager: Manager) -> None:
        await manager.create(TARGET, ROUTE, RouteConfig(rules=(a_rule(),)))
        await manager.create(TARGET, OTHER, RouteConfig())
        await manager.delete(TARGET, ROUTE)
        assert await manager.exists(TARGET, OTHER)

    async def test_clusters_and_the_control_plane_do_not_mix(self, manager: Manager) -> None:
        same_name = replace(DISCOVERY, key=ROUTE.key)
        await manager.create(TARGET, ROUTE, RouteConfig(rules=(a_rule(),)))
        assert not await manager.exists(None, same_name)

    async def test_discovery_route_is_kept_on_the_control_plane(self, manager: Manager) -> None:
        rule = replace(a_rule(path="/demo/dep"), rewrite_path="/cluster/demo/dep")
        await manager.create(None, DISCOVERY, RouteConfig(rules=(rule,)))
        assert await manager.list_rules(None, DISCOVERY) == (rule,)

    async def test_written_route_becomes_live(self, manager: Manager) -> None:
        await manager.create(TARGET, ROUTE, RouteConfig(rules=(a_default_rule(),)))
        await manager.add_rules(TARGET, ROUTE, a_rule())
        assert await manager.is_live(TARGET, ROUTE)

    async def test_missing_route_is_live(self, manager: Manager) -> None:
        assert await manager.is_live(TARGET, ROUTE)

    async def test_deleted_route_is_live(self, manager: Manager) -> None:
        await manager.create(TARGET, ROUTE, RouteConfig(rules=(a_rule(),)))
        await manager.delete(TARGET, ROUTE)
        assert await manager.is_live(TARGET, ROUTE)
