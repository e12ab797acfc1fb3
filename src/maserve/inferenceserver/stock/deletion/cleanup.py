"""`Cleanup`: no replica, no model config and no file of the server is left in any cluster."""

from maserve.backends import ServerState
from maserve.base.errors import Unavailable
from maserve.conditions import true_condition, unknown_condition
from maserve.inferenceserver.clusters import known_targets
from maserve.inferenceserver.stock.ports import Ports
from maserve.inferenceserver.stock.teardown import remove_from_cluster
from maserve.resource.metadata import key_of
from maserve.wire import api, v2


class Cleanup:
    """Removes every cluster's part.

    An unreachable cluster is retried, the finalizer holds meanwhile.

    TRUE when the backend is unknown: nothing was ever made. Escape for a cluster that is gone for
    good: remove the finalizer by hand.
    """

    type = "Cleanup"

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    async def retrieve(
        self, resource: v2.InferenceServer, previous: api.Condition
    ) -> api.Condition:
        now_s = self._ports.now_s()
        if not self._ports.backends.is_known(resource.spec.backend_type):
            return true_condition(previous, now_s)
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
        backend = self._ports.backend(resource)
        failures: list[str] = []
        left: list[str] = []
        for target in known_targets(resource):
            try:
                if not await remove_from_cluster(self._ports, backend, key_of(resource), target):
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

    async def _is_left(self, server: v2.InferenceServer, target: v2.ClusterTarget) -> bool:
        status = await self._ports.backend(server).get_server_status(server, target)
        config = self._ports.model_config
        return status.state is not ServerState.CREATE_PENDING or (
            await config.check_model_config_exists(key_of(server), target)
        )
