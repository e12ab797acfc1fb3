"""The endpoint ports of the embedded mode keep their contracts, on a real Envoy."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from maserve.base.errors import Invalid
from maserve.endpoints import Endpoint
from maserve.endpoints.local import LocalProvider, LocalPublisher
from maserve.testing.endpoints_contract import (
    EAST,
    ProviderContract,
    PublisherContract,
    a_server,
)
from maserve.testing.envoy_rig import running_rig
from maserve.wire import v2

pytestmark = pytest.mark.real


class TestLocalProvider(ProviderContract):
    @pytest.fixture
    async def provider(self, tmp_path: Path) -> AsyncIterator[LocalProvider]:
        async with running_rig(tmp_path) as rig:
            yield LocalProvider(rig.plane)

    async def test_kubernetes_target_is_the_local_group_of_its_id(
        self, provider: LocalProvider
    ) -> None:
        remote = v2.ClusterTarget(cluster_id="east")
        remote.kubernetes.host = "https://10.0.0.1"
        local = await provider.resolve(v2.ClusterTarget(cluster_id="east"))
        assert await provider.resolve(remote) == local

    async def test_target_without_an_id_is_invalid(self, provider: LocalProvider) -> None:
        with pytest.raises(Invalid, match="cluster_id"):
            await provider.resolve(v2.ClusterTarget())


class TestLocalPublisher(PublisherContract):
    @pytest.fixture
    async def publisher(self, tmp_path: Path) -> AsyncIterator[LocalPublisher]:
        async with running_rig(tmp_path) as rig:
            yield LocalPublisher(rig.plane)

    async def test_https_endpoint_is_invalid(self, publisher: LocalPublisher) -> None:
        endpoint = Endpoint(host="127.0.0.1", port=9001, scheme="https")
        with pytest.raises(Invalid, match="scheme"):
            await publisher.sync(a_server(), {EAST: endpoint})

    async def test_host_name_is_invalid(self, publisher: LocalPublisher) -> None:
        with pytest.raises(Invalid, match="IP address"):
            await publisher.sync(a_server(), {EAST: Endpoint(host="example.org", port=80)})
