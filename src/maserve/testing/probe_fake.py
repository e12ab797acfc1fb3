"""A traffic probe on fake routes: what they serve is what answers."""

from maserve.base.keys import ClusterId, Key
from maserve.resource import names
from maserve.routing import RouteId
from maserve.testing.faults import Faults
from maserve.testing.routing_fake import FakeRoutingManager
from maserve.wire import v2


class FakeTrafficProbe(Faults):
    """Answers with the model that the live rule of a Deployment leads to.

    `blind` stands for a data plane that cannot be reached from here, `stuck_on` for one that goes
    on answering with an old model, or with none ("").
    """

    def __init__(self, routes: FakeRoutingManager) -> None:
        super().__init__()
        self.blind = False
        self.stuck_on: str | None = None
        self._routes = routes

    async def find_answering_model(
        self, target: v2.ClusterTarget, server: Key, deployment: str
    ) -> str | None:
        self.read("find_answering_model")
        if self.blind:
            return None
        if self.stuck_on is not None:
            return self.stuck_on
        key = Key(server.namespace, names.traffic_route(server.name))
        route = RouteId(cluster=ClusterId(target.cluster_id), key=key)
        path = names.traffic_path(server.name, deployment)
        rules = self._routes.live_rules(target.cluster_id, route)
        found = next((rule for rule in rules if rule.match_path == path), None)
        return "" if found is None else found.rewrite_path.rpartition("/")[2]
