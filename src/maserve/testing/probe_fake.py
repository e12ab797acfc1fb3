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
        self, target: v2.ClusterTarget | None, server: Key, deployment: str
    ) -> str | None:
        self.read("find_answering_model")
        if self.blind:
            return None
        if self.stuck_on is not None:
            return self.stuck_on
        if target is None:
            return self._answering_at_the_gateway(server, deployment)
        return self._answering_in(ClusterId(target.cluster_id), server, deployment)

    def _answering_at_the_gateway(self, server: Key, deployment: str) -> str:
        """Return the first cluster's answer, if the gateway leads anywhere."""
        rules = self._routes.live_rules(None, RouteId.discovery(server))
        path = names.discovery_path(server.name, deployment)
        if not any(rule.match_path == path for rule in rules):
            return ""
        clusters = self._routes.clusters_of(server)
        answers = (self._answering_in(cluster, server, deployment) for cluster in clusters)
        return next((answer for answer in answers if answer), "")

    def _answering_in(self, cluster: ClusterId, server: Key, deployment: str) -> str:
        path = names.traffic_path(server.name, deployment)
        rules = self._routes.live_rules(cluster, RouteId.traffic(server, cluster))
        found = next((rule for rule in rules if rule.match_path == path), None)
        return "" if found is None else found.rewrite_path.rpartition("/")[2]
