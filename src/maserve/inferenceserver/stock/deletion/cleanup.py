"""`Cleanup`: no replica, no model config and no file of the server is left in any cluster."""

from maserve.backends import Backend, ServerState
from maserve.base.errors import Unavailable
from maserve.conditions import true_condition, unknown_condition
from maserve.inferenceserver.clusters import known_targets
from maserve.inferenceserver.stock.ports import Ports
from maserve.inferenceserver.stock.teardown import remove_from_cluster
from maserve.resource.metadata import key_of
from maserve.wire import api, v2


class Cleanup:
    """Removes every cluster's part.

    An unreachable cluster is retried, the finalizer holds meanwhile. Escape for a cluster that is
    gone for good: remove the finalizer by hand.
    """

    type = "Cleanup"

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    async def retrieve(
        self, resource: v2.InferenceServer, previous: api.Condition
    ) -> api.Condition:
        now_s = self._ports.now_s()
        try:
            left = [
                target.cluster_id
                for target in known_targets(resource)
                if await self._is_left(resource, target)
            ]
        except Unavailable as error:
            return unknown_condition(previous, str(error), "StatusCheckFailed", now_s)
        if not left:
            return true_condition(previous, now_s)
        text = f"replicas are draining in: {', '.join(left)}"
        return unknown_condition(previous, text, "CleanupInProgress", now_s)

    async def run(self, resource: v2.InferenceServer, previous: api.Condition) -> api.Condition:
        failures: list[str] = []
        left: list[str] = []
        for target in known_targets(resource):
            try:
                if not await self._remove(resource, target):
                    left.append(target.cluster_id)
            except Unavailable as error:
                failures.append(f"{target.cluster_id}: {error}")
        now_s = self._ports.now_s()
        if failures:
            text = f"{'; '.join(failures)}; the finalizer holds until the cluster answers"
            return unknown_condition(previous, text, "ServerCleanupFailed", now_s)
        if left:
            text = f"replicas are draining in: {', '.join(left)}"
            return unknown_condition(previous, text, "CleanupInProgress", now_s)
        return true_condition(previous, now_s)

    async def _remove(self, server: v2.InferenceServer, target: v2.ClusterTarget) -> bool:
        for backend in self._backends(server):
            if not await remove_from_cluster(self._ports, backend, key_of(server), target):
                return False
        return True

    async def _is_left(self, server: v2.InferenceServer, target: v2.ClusterTarget) -> bool:
        for backend in self._backends(server):
            status = await backend.get_server_status(server, target)
            if status.state is not ServerState.CREATE_PENDING:
                return True
        return await self._ports.model_config.check_model_config_exists(key_of(server), target)

    def _backends(self, server: v2.InferenceServer) -> tuple[Backend, ...]:
        """Return who may have made something: anybody, where the type names nobody here.

        It may have named one when the replicas were made.
        """
        backends, wanted = self._ports.backends, server.spec.backend_type
        types = (wanted,) if backends.is_known(wanted) else backends.types()
        return tuple(backends.get(each) for each in types)
