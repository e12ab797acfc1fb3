"""The fake endpoint ports keep their contracts."""

import pytest

from maserve.base.errors import Unavailable
from maserve.testing.endpoints_contract import ProviderContract, PublisherContract
from maserve.testing.endpoints_fake import FakeProvider, FakePublisher
from maserve.wire import v2


class TestFakeProvider(ProviderContract):
    @pytest.fixture
    def provider(self) -> FakeProvider:
        return FakeProvider()

    async def test_unreachable_cluster_is_unavailable(self, provider: FakeProvider) -> None:
        provider.unreachable.add("east")
        with pytest.raises(Unavailable):
            await provider.resolve(v2.ClusterTarget(cluster_id="east"))


class TestFakePublisher(PublisherContract):
    @pytest.fixture
    def publisher(self) -> FakePublisher:
        return FakePublisher()
