"""Removing everything of a server from one cluster, in the order that loses no request."""

from collections.abc import Iterable

from maserve.backends import Backend
from maserve.base.keys import Key
from maserve.inferenceserver.stock.ports import Ports
from maserve.resource.targets import cluster_id
from maserve.routing import RouteId
from maserve.wire import v2


def traffic_route(server: Key, target: v2.ClusterTarget) -> RouteId:
    """Name the server's traffic route in one cluster."""
    return RouteId.traffic(server, cluster_id(target))


def discovery_route(server: Key) -> RouteId:
    """Name the server's discovery route on the control plane."""
    return RouteId.discovery(server)


async def remove_from_cluster(
    ports: Ports, backends: Iterable[Backend], server: Key, target: v2.ClusterTarget
) -> bool:
    """Drain the replicas, then remove route and model config; tell whether nothing is left.

    The route goes last so that requests in flight still find their way; traffic must have left
    before.
    """
    gone = [await backend.delete_server(server, target) for backend in backends]
    if not all(gone):
        return False
    await ports.routes.delete(target, traffic_route(server, target))
    await ports.model_config.delete_model_config(server, target)
    return True


async def is_gone(ports: Ports, target: v2.ClusterTarget | None, route: RouteId) -> bool:
    """Tell whether a route is neither stored nor served any more; target None: the gateway's."""
    routes = ports.routes
    return not await routes.exists(target, route) and await routes.is_live(target, route)
