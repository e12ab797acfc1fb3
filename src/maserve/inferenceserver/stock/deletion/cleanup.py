"""`Cleanup`: no replica, no model config and no file of the server is left in any cluster."""

from maserve.backends import Backend, ServerState
from maserve.base.errors import Unavailable
from maserve.conditions import true_condition, unknown_condition
from maserve.inferenceserver.clusters import known_targets
from maserve.inferenceserver.maker import backend_name, find_maker, forget_maker
from maserve.inferenceserver.stock.ports import Ports
from maserve.inferenceserver.stock.teardown import is_gone, remove_from_cluster, traffic_route
from maserve.resource.metadata import key_of
from maserve.wire import api, v2


class Cleanup:
    """Removes every cluster's part.

    Every registered backend is asked: absent is success, and none of them can be forgotten. A
    cluster that is away is retried, and replicas of a backend that is not registered here cannot be
    removed; the finalizer holds meanwhile. Escape for what is gone for good: remove the finalizer
    by hand.
    """

    type = "Cleanup"

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    async def retrieve(
        self, resource: v2.InferenceServer, previous: api.Condition
    ) -> api.Condition:
        now_s = self._ports.now_s()
        if self._is_held(resource):
            return _held(previous, resource, now_s)
        try:
            left = [
                target.cluster_id
                for target in known_targets(resource)
                if await self._is_left(resource, target)
            ]
        except Unavailable as error:
            return unknown_condition(previous, str(error), "StatusCheckFailed", now_s)
        return _judge(previous, left, now_s)

    async def run(self, resource: v2.InferenceServer, previous: api.Condition) -> api.Condition:
        now_s = self._ports.now_s()
        if self._is_held(resource):
            return _held(previous, resource, now_s)
        failures: list[str] = []
        left: list[str] = []
        for target in known_targets(resource):
            try:
                if not await remove_from_cluster(
                    self._ports, self._backends(), key_of(resource), target
                ):
                    left.append(target.cluster_id)
            except Unavailable as error:
                failures.append(f"{target.cluster_id}: {error}")
        if failures:
            text = f"{'; '.join(failures)}; the finalizer holds until the cluster answers"
            return unknown_condition(previous, text, "ServerCleanupFailed", now_s)
        if not left:
            forget_maker(resource)
        return _judge(previous, left, now_s)

    def _is_held(self, server: v2.InferenceServer) -> bool:
        """Tell whether there may be replicas of a backend that nobody can ask here."""
        maker = find_maker(server)
        return maker is not None and not self._ports.backends.is_known(maker)

    async def _is_left(self, server: v2.InferenceServer, target: v2.ClusterTarget) -> bool:
        for backend in self._backends():
            status = await backend.get_server_status(server, target)
            if status.state is not ServerState.CREATE_PENDING:
                return True
        if await self._ports.model_config.check_model_config_exists(key_of(server), target):
            return True
        return not await is_gone(self._ports, target, traffic_route(key_of(server), target))

    def _backends(self) -> tuple[Backend, ...]:
        backends = self._ports.backends
        return tuple(backends.get(each) for each in backends.types())


def _judge(previous: api.Condition, left: list[str], now_s: float) -> api.Condition:
    if not left:
        return true_condition(previous, now_s)
    text = f"replicas are draining in: {', '.join(left)}"
    return unknown_condition(previous, text, "CleanupInProgress", now_s)


def _held(previous: api.Condition, server: v2.InferenceServer, now_s: float) -> api.Condition:
    maker = backend_name(find_maker(server) or server.spec.backend_type)
    text = (
        f"replicas of {maker} may be left, and no backend of that type is registered here: the "
        "finalizer holds until a control plane has it; or end them by hand and remove the finalizer"
    )
    return unknown_condition(previous, text, "BackendNotFound", now_s)
