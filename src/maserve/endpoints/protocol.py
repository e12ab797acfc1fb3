"""The two ports of the endpoint step (extension guide, section 4: Provider and Publisher)."""

from collections.abc import Mapping
from typing import Protocol

from maserve.base.keys import ClusterId
from maserve.endpoints.types import Endpoint
from maserve.wire import v2


class Provider(Protocol):
    """Resolves where one cluster admits traffic."""

    async def resolve(self, target: v2.ClusterTarget) -> Endpoint:
        """Return the cluster's ingress. Raises `Unavailable` when it cannot be told now."""
        ...


class Publisher(Protocol):
    """Publishes a server's clusters under `{is}-endpoints` in the server's namespace."""

    async def sync(
        self, server: v2.InferenceServer, endpoints: Mapping[ClusterId, Endpoint]
    ) -> None:
        """Publish exactly this map: clusters in it are upserted, others are removed. Idempotent."""
        ...

    async def get(self, server: v2.InferenceServer) -> dict[ClusterId, Endpoint]:
        """Return the published map, empty when nothing has been published yet."""
        ...

    async def delete(self, server: v2.InferenceServer) -> None:
        """Remove the discovery Service; after it returns the Service is gone. Absent is success."""
        ...
