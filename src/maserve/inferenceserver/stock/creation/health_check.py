"""`HealthCheck`: every cluster is healthy now, and no cluster is left that was to go.

Failures are not auto-remediated (extension guide).
"""

from maserve.base.errors import Unavailable
from maserve.conditions import true_condition, unknown_condition
from maserve.inferenceserver.clusters import removed_targets
from maserve.inferenceserver.stock.ports import Ports
from maserve.resource.metadata import key_of
from maserve.wire import api, v2


class HealthCheck:
    """Asks the backend in every cluster."""

    type = "HealthCheck"

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    async def retrieve(
        self, resource: v2.InferenceServer, previous: api.Condition
    ) -> api.Condition:
        now_s = self._ports.now_s()
        if not self._ports.backends.is_known(resource.spec.backend_type):
            return unknown_condition(previous, "no backend to ask", "BackendNotFound", now_s)
        backend = self._ports.backend(resource)
        try:
            ill = [
                target.cluster_id
                for target in resource.spec.cluster_targets
                if not await backend.is_healthy(key_of(resource), target)
            ]
        except Unavailable as error:
            return unknown_condition(previous, str(error), "HealthCheckFailed", now_s)
        if ill:
            text = f"not every replica is ready in: {', '.join(ill)}"
            return unknown_condition(previous, text, "HealthCheckFailed", now_s)
        # BackendProvision takes a cluster down only once EndpointPublish has let go of it.
        if leaving := [target.cluster_id for target in removed_targets(resource)]:
            text = f"still to be removed: {', '.join(leaving)}"
            return unknown_condition(previous, text, "ClusterRemoving", now_s)
        return true_condition(previous, now_s)

    async def run(self, _resource: v2.InferenceServer, previous: api.Condition) -> api.Condition:
        return previous
