"""`EndpointPublish`: the discovery Service leads to every cluster (extension guide, section 4)."""

from maserve.base.errors import Error, Unavailable
from maserve.base.keys import ClusterId
from maserve.conditions import false_condition, true_condition, unknown_condition
from maserve.endpoints import Endpoint
from maserve.inferenceserver.stock.ports import Ports
from maserve.resource.targets import cluster_id
from maserve.wire import api, v2


class EndpointPublish:
    """Resolves every cluster, then syncs once.

    One unresolvable cluster does not stop the others.
    """

    type = "EndpointPublish"

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    async def retrieve(
        self, resource: v2.InferenceServer, previous: api.Condition
    ) -> api.Condition:
        now_s = self._ports.now_s()
        try:
            published = set(await self._ports.publisher.get(resource))
        except Unavailable as error:
            return unknown_condition(previous, str(error), "GetFailed", now_s)
        wanted = {cluster_id(target) for target in resource.spec.cluster_targets}
        if missing := sorted(wanted - published):
            text = f"clusters not published: {', '.join(missing)}"
            return unknown_condition(previous, text, "EndpointSliceMissing", now_s)
        if orphans := sorted(published - wanted):
            text = f"clusters still published: {', '.join(orphans)}"
            return unknown_condition(previous, text, "OrphanEndpointSlice", now_s)
        return true_condition(previous, now_s)

    async def run(self, resource: v2.InferenceServer, previous: api.Condition) -> api.Condition:
        now_s = self._ports.now_s()
        resolved, failures = await self._resolve_all(resource)
        try:
            await self._ports.publisher.sync(resource, resolved)
        except Unavailable as error:
            return unknown_condition(previous, str(error), "SyncFailed", now_s)
        except Error as error:
            return false_condition(previous, str(error), "SyncFailed", now_s)
        if failures:
            text = f"not resolved: {'; '.join(failures)}"
            return unknown_condition(previous, text, "PartialEndpointPublish", now_s)
        return true_condition(previous, now_s)

    async def _resolve_all(
        self, server: v2.InferenceServer
    ) -> tuple[dict[ClusterId, Endpoint], list[str]]:
        resolved: dict[ClusterId, Endpoint] = {}
        failures: list[str] = []
        for target in server.spec.cluster_targets:
            try:
                resolved[cluster_id(target)] = await self._ports.provider.resolve(target)
            except Error as error:
                failures.append(f"{target.cluster_id}: {error}")
        return resolved, failures
