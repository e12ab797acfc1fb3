"""Where a cluster of this machine admits traffic."""

from maserve.base.errors import Invalid, Problem
from maserve.base.keys import ClusterId
from maserve.endpoints.types import Endpoint
from maserve.envoy import DataPlane
from maserve.wire import v2


class LocalProvider:
    """Resolves a cluster to its listener, which is opened when it is asked for.

    A target with a Kubernetes connection is the local process group of its cluster id.
    """

    def __init__(self, plane: DataPlane) -> None:
        self._plane = plane

    async def resolve(self, target: v2.ClusterTarget) -> Endpoint:
        if not target.cluster_id:
            raise Invalid(Problem("cluster_id", "is empty"))
        host, port = await self._plane.ensure_cluster_listener(ClusterId(target.cluster_id))
        return Endpoint(host=host, port=port)
