"""`BackendProvision`: every cluster runs the wanted replicas, one cluster brought up at a time.

Also takes down what is left in clusters that were removed from the spec, once traffic has left
them.
"""

from maserve.backends import ServerState, ServerStatus
from maserve.base.errors import Denied, Unavailable
from maserve.conditions import false_condition, true_condition, unknown_condition
from maserve.inferenceserver.clusters import forget_target, removed_targets
from maserve.inferenceserver.maker import is_maker_remembered, remember_maker
from maserve.inferenceserver.stock.ports import Ports
from maserve.inferenceserver.stock.teardown import remove_from_cluster
from maserve.resource.metadata import key_of
from maserve.resource.targets import cluster_id
from maserve.wire import api, v2


class BackendProvision:
    """Works on the first cluster, in spec order, that is not done; the others wait for it."""

    type = "BackendProvision"

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    async def retrieve(
        self, resource: v2.InferenceServer, previous: api.Condition
    ) -> api.Condition:
        now_s = self._ports.now_s()
        if not self._ports.backends.is_known(resource.spec.backend_type):
            return unknown_condition(previous, "no backend to ask", "BackendNotFound", now_s)
        if not is_maker_remembered(resource):
            text = "the backend is not on record yet"
            return unknown_condition(previous, text, "RollingInProgress", now_s)
        try:
            waiting = await self._find_waiting(resource)
            if waiting is None:
                leaving = await self._leaving(resource)
                if not leaving:
                    return true_condition(previous, now_s)
                names = ", ".join(target.cluster_id for target in leaving)
                return unknown_condition(
                    previous, f"removing from {names}", "ClusterRemoving", now_s
                )
        except Unavailable as error:
            return unknown_condition(previous, str(error), "StatusCheckFailed", now_s)
        return _describe(previous, resource, *waiting, now_s=now_s)

    async def run(self, resource: v2.InferenceServer, previous: api.Condition) -> api.Condition:
        if not is_maker_remembered(resource):
            # Nothing is made in this pass: the record has to be stored first.
            remember_maker(resource)
            return await self.retrieve(resource, previous)
        now_s = self._ports.now_s()
        try:
            waiting = await self._find_waiting(resource)
            if waiting is not None:
                target, _ = waiting
                status = await self._ports.backend(resource).create_server(resource, target)
                previous = _describe(previous, resource, target, status, now_s=now_s)
            # Also beside a cluster that does not come up: it may be short of what this one holds.
            await self._remove(resource)
        except Denied as error:
            return false_condition(previous, str(error), "ProvisionFailed", now_s)
        except Unavailable as error:
            return unknown_condition(previous, str(error), "ProvisionFailed", now_s)
        return previous

    async def _find_waiting(
        self, server: v2.InferenceServer
    ) -> tuple[v2.ClusterTarget, ServerStatus] | None:
        """Return the first cluster that does not serve the wanted replicas, None when all do."""
        backend = self._ports.backend(server)
        for target in server.spec.cluster_targets:
            status = await backend.get_server_status(server, target)
            if status.state is not ServerState.SERVING or not status.up_to_date:
                return target, status
        return None

    async def _leaving(self, server: v2.InferenceServer) -> tuple[v2.ClusterTarget, ...]:
        """Return removed clusters that are no longer published: no new request enters them."""
        removed = removed_targets(server)
        if not removed:
            return ()
        published = await self._ports.publisher.get(server)
        return tuple(target for target in removed if cluster_id(target) not in published)

    async def _remove(self, server: v2.InferenceServer) -> None:
        for target in await self._leaving(server):
            backends = (self._ports.backend(server),)
            if await remove_from_cluster(self._ports, backends, key_of(server), target):
                forget_target(server, cluster_id(target))


def _describe(
    previous: api.Condition,
    server: v2.InferenceServer,
    target: v2.ClusterTarget,
    status: ServerStatus,
    *,
    now_s: float,
) -> api.Condition:
    cluster = target.cluster_id
    removed = ", ".join(target.cluster_id for target in removed_targets(server))
    then = f"; still to be removed: {removed}" if removed else ""
    if status.state is ServerState.FAILED:
        text = f"cluster {cluster}: {status.message}{then}"
        return unknown_condition(previous, text, "BackendProvisioningFailed", now_s)
    detail = f": {status.message}" if status.message else ""
    text = f"provisioning cluster {cluster}{detail}{then}"
    return unknown_condition(previous, text, "RollingInProgress", now_s)
