"""An endpoint Provider and a Publisher in memory."""

from collections.abc import Mapping

from maserve.base.errors import Unavailable
from maserve.base.keys import ClusterId, Key
from maserve.endpoints import Endpoint
from maserve.resource.metadata import key_of
from maserve.testing.faults import Faults
from maserve.wire import v2


class FakeProvider(Faults):
    """Gives every cluster an endpoint of its own. Clusters in `unreachable` cannot be resolved."""

    def __init__(self) -> None:
        super().__init__()
        self.unreachable: set[str] = set()
        self._known: dict[str, Endpoint] = {}

    async def resolve(self, target: v2.ClusterTarget) -> Endpoint:
        self.write("resolve", target.cluster_id)
        if target.cluster_id in self.unreachable:
            raise Unavailable(f"cluster {target.cluster_id} cannot be reached")
        port = 9000 + len(self._known)
        return self._known.setdefault(target.cluster_id, Endpoint(host="127.0.0.1", port=port))


class FakePublisher(Faults):
    """Keeps what was published, by server."""

    def __init__(self) -> None:
        super().__init__()
        self.published: dict[Key, dict[ClusterId, Endpoint]] = {}

    async def sync(
        self, server: v2.InferenceServer, endpoints: Mapping[ClusterId, Endpoint]
    ) -> None:
        self.write("sync", str(key_of(server)), *sorted(endpoints))
        self.published[key_of(server)] = dict(sorted(endpoints.items()))

    async def get(self, server: v2.InferenceServer) -> dict[ClusterId, Endpoint]:
        self.read("get")
        return dict(self.published.get(key_of(server), {}))

    async def delete(self, server: v2.InferenceServer) -> None:
        self.write("delete", str(key_of(server)))
        self.published.pop(key_of(server), None)
