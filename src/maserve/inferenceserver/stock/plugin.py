"""The stock InferenceServer plugin.

Seven creation actors, two deletion actors, in the guide's order.
"""

from maserve.backends import ServerState, ServerStatus
from maserve.base.errors import Unavailable, Unsupported
from maserve.conditions import (
    FALSE,
    TRUE,
    ActorList,
    false_condition,
    find_condition,
    keep_conditions,
    true_condition,
    unknown_condition,
)
from maserve.inferenceserver.clusters import is_ending, known_targets
from maserve.inferenceserver.events import find_held
from maserve.inferenceserver.maker import find_maker
from maserve.inferenceserver.plugin import Conditions
from maserve.inferenceserver.stock.creation.backend_provision import BackendProvision
from maserve.inferenceserver.stock.creation.discovery_route_provision import (
    DiscoveryRouteProvision,
)
from maserve.inferenceserver.stock.creation.endpoint_publish import EndpointPublish
from maserve.inferenceserver.stock.creation.health_check import HealthCheck
from maserve.inferenceserver.stock.creation.model_config_provision import ModelConfigProvision
from maserve.inferenceserver.stock.creation.traffic_route_provision import TrafficRouteProvision
from maserve.inferenceserver.stock.creation.validation import Validation
from maserve.inferenceserver.stock.deletion.cleanup import Cleanup
from maserve.inferenceserver.stock.deletion.route_cleanup import RouteCleanup
from maserve.inferenceserver.stock.ports import Ports
from maserve.resource.metadata import is_deleting
from maserve.wire import api, v2

_CLUSTER_STATE = {
    ServerState.CREATE_PENDING: v2.INFERENCE_SERVER_STATE_CREATE_PENDING,
    ServerState.CREATING: v2.INFERENCE_SERVER_STATE_CREATING,
    ServerState.SERVING: v2.INFERENCE_SERVER_STATE_SERVING,
    ServerState.FAILED: v2.INFERENCE_SERVER_STATE_FAILED,
    ServerState.DELETING: v2.INFERENCE_SERVER_STATE_DELETING,
}


class StockPlugin:
    """Delegates every outward effect to the ports it is built with."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._creation: Conditions = ActorList[v2.InferenceServer](
            [
                Validation(ports),
                BackendProvision(ports),
                EndpointPublish(ports),
                DiscoveryRouteProvision(ports),
                TrafficRouteProvision(ports),
                ModelConfigProvision(ports),
                HealthCheck(ports),
            ]
        )
        self._deletion: Conditions = ActorList[v2.InferenceServer](
            [RouteCleanup(ports), Cleanup(ports)]
        )

    def creation_plugin(self, _resource: v2.InferenceServer) -> Conditions:
        return self._creation

    def deletion_plugin(self, _resource: v2.InferenceServer) -> Conditions:
        return self._deletion

    def parse_state(self, resource: v2.InferenceServer) -> v2.InferenceServerState:
        """Compute the state.

        FAILED only for a real failure, CREATING while anything is in progress. An end fails only
        when it cannot go on without a person.
        """
        conditions = resource.status.conditions
        satisfied = bool(conditions) and all(c.status == TRUE for c in conditions)
        if is_ending(resource):
            return _ending_state(resource, satisfied=satisfied)
        if satisfied:
            return v2.INFERENCE_SERVER_STATE_SERVING
        failed = any(c.status == FALSE or c.reason in _FAILURES for c in conditions)
        return v2.INFERENCE_SERVER_STATE_FAILED if failed else v2.INFERENCE_SERVER_STATE_CREATING

    async def update_details(self, resource: v2.InferenceServer) -> None:
        """Refill `status.cluster_statuses`.

        One row per cluster that may hold something, in order.
        """
        is_known = self._ports.backends.is_known(resource.spec.backend_type)
        if not is_known and find_maker(resource) is None and not is_ending(resource):
            return
        old = {row.cluster_id: row for row in resource.status.cluster_statuses}
        rows = [
            await self._cluster_status(resource, target, old.get(target.cluster_id))
            for target in known_targets(resource)
        ]
        if list(resource.status.cluster_statuses) != rows:
            del resource.status.cluster_statuses[:]
            resource.status.cluster_statuses.extend(rows)

    def update_conditions(self, resource: v2.InferenceServer, chosen: Conditions) -> None:
        keep_conditions(resource, (actor.type for actor in chosen.actors))

    async def _cluster_status(
        self,
        server: v2.InferenceServer,
        target: v2.ClusterTarget,
        old: v2.ClusterTargetStatus | None,
    ) -> v2.ClusterTargetStatus:
        row = v2.ClusterTargetStatus(cluster_id=target.cluster_id)
        condition = api.Condition(type=BackendProvision.type)
        if old is not None:
            condition.CopyFrom(find_condition(old.conditions, condition.type) or condition)
        now_s = self._ports.now_s()
        try:
            status = await self._ask(server, target)
        except (Unavailable, Unsupported) as error:
            row.state = old.state if old is not None else v2.INFERENCE_SERVER_STATE_INVALID
            row.message = str(error)
            is_missing = isinstance(error, Unsupported)
            reason = "BackendNotFound" if is_missing else "StatusCheckFailed"
            row.conditions.append(unknown_condition(condition, str(error), reason, now_s))
            return row
        if status.state is ServerState.CREATE_PENDING and is_ending(server):
            row.state = v2.INFERENCE_SERVER_STATE_DELETED
            return row
        row.state = _CLUSTER_STATE[status.state]
        row.message = status.message
        row.conditions.append(_provisioned(condition, status, now_s))
        return row

    async def _ask(self, server: v2.InferenceServer, target: v2.ClusterTarget) -> ServerStatus:
        """Ask the backend that made the replicas, or that is to; without one nothing is there."""
        maker, wanted = find_maker(server), server.spec.backend_type
        if maker is None and not self._ports.backends.is_known(wanted):
            return ServerStatus(state=ServerState.CREATE_PENDING)
        backend = self._ports.backends.get(wanted if maker is None else maker)
        return await backend.get_server_status(server, target)


_FAILURES = frozenset({"BackendProvisioningFailed"})
"""Reasons that mean a failure to a reader although the step goes on trying."""


def _ending_state(server: v2.InferenceServer, *, satisfied: bool) -> v2.InferenceServerState:
    if find_held(server) is not None:
        return v2.INFERENCE_SERVER_STATE_FAILED
    if satisfied and not is_deleting(server):
        return v2.INFERENCE_SERVER_STATE_DELETED
    return v2.INFERENCE_SERVER_STATE_DELETING


def _provisioned(previous: api.Condition, status: ServerStatus, now_s: float) -> api.Condition:
    if status.state is ServerState.SERVING and status.up_to_date:
        return true_condition(previous, now_s)
    if status.state is ServerState.FAILED:
        return false_condition(previous, status.message, "BackendProvisioningFailed", now_s)
    return unknown_condition(previous, status.message, "RollingInProgress", now_s)
