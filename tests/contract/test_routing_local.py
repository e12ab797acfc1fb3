"""The routing manager of the embedded mode keeps the contract, on a real Envoy."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from maserve.base.keys import ClusterId
from maserve.routing.local import LocalRoutingManager
from maserve.testing.envoy_rig import running_rig
from maserve.testing.routing_contract import RoutingContract

pytestmark = pytest.mark.real


class TestLocalRoutingManager(RoutingContract):
    @pytest.fixture
    async def manager(self, tmp_path: Path) -> AsyncIterator[LocalRoutingManager]:
        async with running_rig(tmp_path) as rig:
            await rig.plane.ensure_cluster_listener(ClusterId("east"))
            yield LocalRoutingManager(rig.plane)
