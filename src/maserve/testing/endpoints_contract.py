"""What every endpoint Provider and Publisher does, as tests."""

# ruff: noqa: S101 - assertions are what a contract is made of

import pytest

from maserve.base.keys import ClusterId
from maserve.endpoints import Endpoint, Provider, Publisher
from maserve.wire import v2

EAST = ClusterId("east")
WEST = ClusterId("west")
ONE = Endpoint(host="127.0.0.1", port=9001)
TWO = Endpoint(host="127.0.0.1", port=9002)


def a_server(name: str = "demo", namespace: str = "team") -> v2.InferenceServer:
    """Build a server that has only a name."""
    server = v2.InferenceServer()
    server.metadata.name = name
    server.metadata.namespace = namespace
    return server


class ProviderContract:
    """The fixture `provider` reaches the clusters `east` and `west`."""

    @pytest.fixture
    def provider(self) -> Provider:
        """Give the implementation under test."""
        raise NotImplementedError("the class that inherits the suite has a fixture `provider`")

    async def test_cluster_resolves_to_an_address(self, provider: Provider) -> None:
        endpoint = await provider.resolve(v2.ClusterTarget(cluster_id="east"))
        assert endpoint.host
        assert 0 < endpoint.port < 65536

    async def test_resolving_again_gives_the_same(self, provider: Provider) -> None:
        first = await provider.resolve(v2.ClusterTarget(cluster_id="east"))
        assert await provider.resolve(v2.ClusterTarget(cluster_id="east")) == first

    async def test_clusters_have_different_endpoints(self, provider: Provider) -> None:
        east = await provider.resolve(v2.ClusterTarget(cluster_id="east"))
        assert await provider.resolve(v2.ClusterTarget(cluster_id="west")) != east


class PublisherContract:
    """The fixture `publisher` is the implementation, empty."""

    @pytest.fixture
    def publisher(self) -> Publisher:
        """Give the implementation under test."""
        raise NotImplementedError("the class that inherits the suite has a fixture `publisher`")

    async def test_nothing_is_published_at_first(self, publisher: Publisher) -> None:
        assert await publisher.get(a_server()) == {}

    async def test_published_map_is_returned(self, publisher: Publisher) -> None:
        await publisher.sync(a_server(), {EAST: ONE, WEST: TWO})
        assert await publisher.get(a_server()) == {EAST: ONE, WEST: TWO}

    async def test_sync_removes_what_is_not_in_the_map(self, publisher: Publisher) -> None:
        await publisher.sync(a_server(), {EAST: ONE, WEST: TWO})
        await publisher.sync(a_server(), {WEST: ONE})
        assert await publisher.get(a_server()) == {WEST: ONE}

    async def test_sync_is_idempotent(self, publisher: Publisher) -> None:
        await publisher.sync(a_server(), {EAST: ONE})
        await publisher.sync(a_server(), {EAST: ONE})
        assert await publisher.get(a_server()) == {EAST: ONE}

    async def test_empty_map_is_published_as_empty(self, publisher: Publisher) -> None:
        await publisher.sync(a_server(), {EAST: ONE})
        await publisher.sync(a_server(), {})
        assert await publisher.get(a_server()) == {}

    async def test_servers_do_not_mix(self, publisher: Publisher) -> None:
        await publisher.sync(a_server(), {EAST: ONE})
        assert await publisher.get(a_server(namespace="other")) == {}
        assert await publisher.get(a_server(name="other")) == {}

    async def test_deleted_service_is_empty_and_deleting_again_is_success(
        self, publisher: Publisher
    ) -> None:
        await publisher.sync(a_server(), {EAST: ONE})
        await publisher.delete(a_server())
        await publisher.delete(a_server())
        assert await publisher.get(a_server()) == {}
