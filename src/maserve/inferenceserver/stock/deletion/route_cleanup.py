"""`RouteCleanup`: no route leads to the server any more, and it is not published any more."""

from maserve.base.errors import Unavailable
from maserve.conditions import (
    Progress,
    read_progress,
    true_condition,
    unknown_condition,
    write_progress,
)
from maserve.inferenceserver.clusters import known_targets
from maserve.inferenceserver.stock.ports import Ports
from maserve.inferenceserver.stock.teardown import discovery_route, is_gone, traffic_route
from maserve.resource.metadata import key_of
from maserve.wire import api, v2


class RouteCleanup:
    """Removes the discovery route, the published endpoints, then every cluster's traffic route.

    A discovery Service without clusters looks to `Publisher.get` like none at all. So the condition
    also keeps that `Publisher.delete`, after which there is none, has returned (ADR 0024).
    """

    type = "RouteCleanup"

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    async def retrieve(
        self, resource: v2.InferenceServer, previous: api.Condition
    ) -> api.Condition:
        now_s = self._ports.now_s()
        is_deleted = read_progress(previous).done
        try:
            left = await self._find_left(resource, is_deleted=is_deleted)
        except Unavailable as error:
            return unknown_condition(previous, str(error), "GetFailed", now_s)
        if left is None:
            return true_condition(previous, now_s)
        reason, text = left
        return unknown_condition(previous, text, reason, now_s)

    async def run(self, resource: v2.InferenceServer, previous: api.Condition) -> api.Condition:
        failures: list[str] = []
        try:
            await self._ports.routes.delete(None, discovery_route(key_of(resource)))
            await self._ports.publisher.delete(resource)
            write_progress(previous, Progress(done=True))
        except Unavailable as error:
            failures.append(str(error))
        for target in known_targets(resource):
            try:
                await self._ports.routes.delete(target, traffic_route(key_of(resource), target))
            except Unavailable as error:
                failures.append(f"{target.cluster_id}: {error}")
        if failures:
            text = "; ".join(failures)
            return unknown_condition(previous, text, "DeleteFailed", self._ports.now_s())
        return await self.retrieve(resource, previous)

    async def _find_left(
        self, server: v2.InferenceServer, *, is_deleted: bool
    ) -> tuple[str, str] | None:
        """Return reason and text of the first thing that is left, None when nothing is."""
        key = key_of(server)
        if not await is_gone(self._ports, None, discovery_route(key)):
            return "DiscoveryRouteStillExists", "the discovery route is still there"
        published = await self._ports.publisher.get(server)
        if published or not is_deleted:
            clusters = f": {', '.join(sorted(published))}" if published else ""
            return "EndpointsStillPublished", f"the discovery Service is still there{clusters}"
        left = [
            target.cluster_id
            for target in known_targets(server)
            if not await is_gone(self._ports, target, traffic_route(key, target))
        ]
        if left:
            text = f"traffic routes are still there in: {', '.join(left)}"
            return "TrafficRouteStillExists", text
        return None
