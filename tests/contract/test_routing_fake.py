"""The fake routing manager keeps the contract."""

import pytest

from maserve.base.errors import Unavailable
from maserve.routing import RouteConfig
from maserve.testing.routing_contract import ROUTE, TARGET, RoutingContract, a_rule
from maserve.testing.routing_fake import FakeRoutingManager


class TestFakeRoutingManager(RoutingContract):
    @pytest.fixture
    def manager(self) -> FakeRoutingManager:
        return FakeRoutingManager()

    async def test_held_back_write_is_not_live_until_acknowledged(
        self, manager: FakeRoutingManager
    ) -> None:
        await manager.create(TARGET, ROUTE, RouteConfig(rules=(a_rule(),)))
        manager.hold()
        await manager.add_rules(TARGET, ROUTE, a_rule(model="m2"))
        assert not await manager.is_live(TARGET, ROUTE)
        assert manager.live_rules("east", ROUTE) == (a_rule(),)
        manager.acknowledge()
        assert await manager.is_live(TARGET, ROUTE)

    async def test_next_call_fails_on_request(self, manager: FakeRoutingManager) -> None:
        manager.fail_next(Unavailable("gone"))
        with pytest.raises(Unavailable):
            await manager.create(TARGET, ROUTE, RouteConfig())
        assert not await manager.exists(TARGET, ROUTE)

    async def test_writes_are_recorded(self, manager: FakeRoutingManager) -> None:
        await manager.create(TARGET, ROUTE, RouteConfig())
        await manager.add_rules(TARGET, ROUTE, a_rule())
        await manager.exists(TARGET, ROUTE)
        assert manager.calls == [
            ("create", "east", "team", "demo-traffic"),
            ("add_rules", "east", "team", "demo-traffic", "/cluster/demo/dep"),
        ]
