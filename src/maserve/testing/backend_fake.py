"""A backend on a `FakeWorld`."""

from maserve.backends import LoadReport, ServerState, ServerStatus
from maserve.base.keys import ClusterId, Key, ModelName
from maserve.resource.metadata import key_of
from maserve.testing.faults import Faults
from maserve.testing.world import FakeWorld
from maserve.wire import v2


class FakeBackend(Faults):
    """Keeps its promises in the world's time. `calls` lists every write.

    `reports` holds what is said of a model instead of what is so, for reports that a world of
    replicas does not give by itself.
    """

    def __init__(self, world: FakeWorld) -> None:
        super().__init__()
        self.world = world
        self.reports: dict[str, LoadReport] = {}

    async def create_server(
        self, server: v2.InferenceServer, target: v2.ClusterTarget
    ) -> ServerStatus:
        self.write("create_server", str(key_of(server)), target.cluster_id)
        count, template = _wanted(server)
        self.world.scale(key_of(server), ClusterId(target.cluster_id), count, template)
        return self._status(server, target)

    async def get_server_status(
        self, server: v2.InferenceServer, target: v2.ClusterTarget
    ) -> ServerStatus:
        self.read("get_server_status")
        self.world.settle()
        return self._status(server, target)

    async def delete_server(self, server: Key, target: v2.ClusterTarget) -> bool:
        self.write("delete_server", str(server), target.cluster_id)
        return self.world.remove(server, ClusterId(target.cluster_id))

    async def is_healthy(self, server: Key, target: v2.ClusterTarget) -> bool:
        self.read("is_healthy")
        cluster = ClusterId(target.cluster_id)
        count, _ = self.world.wanted.get((server, cluster), (0, ""))
        ready = [row for row in self.world.statuses(server, cluster) if row.ready]
        return count > 0 and len(ready) >= count

    async def get_model_status(
        self, server: Key, target: v2.ClusterTarget, model: ModelName
    ) -> LoadReport:
        self.read("get_model_status")
        if model in self.reports:
            return self.reports[model]
        return self.world.report(server, ClusterId(target.cluster_id), model)

    def _status(self, server: v2.InferenceServer, target: v2.ClusterTarget) -> ServerStatus:
        key, cluster = key_of(server), ClusterId(target.cluster_id)
        group = (key, cluster)
        if group not in self.world.groups:
            return ServerStatus(state=ServerState.CREATE_PENDING)
        up_to_date = self.world.wanted[group] == _wanted(server)
        rows = self.world.statuses(key, cluster)
        done = [
            replica
            for replica in self.world.groups[group]
            if replica.is_ready(self.world.clock.now())
            and replica.template == self.world.wanted[group][1]
        ]
        serving = up_to_date and len(done) == len(rows) == self.world.wanted[group][0]
        return ServerStatus(
            state=ServerState.SERVING if serving else ServerState.CREATING,
            message="" if serving else f"{len(done)}/{self.world.wanted[group][0]} replicas ready",
            up_to_date=up_to_date,
            replicas=rows,
        )


def _wanted(server: v2.InferenceServer) -> tuple[int, str]:
    """Return count and template of what a server asks for; 0 instances mean one."""
    spec = server.spec.init_spec
    template = spec.resource_spec.SerializeToString(deterministic=True).hex()
    return spec.num_instances or 1, template
