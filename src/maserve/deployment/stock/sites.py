"""The places of a Deployment: those of its rollout, and all that may hold something of it."""

from maserve.base.errors import Error
from maserve.base.keys import Key
from maserve.deployment.keys import server_name
from maserve.deployment.stock.placement import everywhere, snapshot_of, still_wanted
from maserve.deployment.stock.ports import Ports
from maserve.deployment.stock.site import Site, Trouble, site_of
from maserve.wire import v2


async def list_placed(ports: Ports, deployment: v2.Deployment) -> tuple[Site, ...]:
    """Return the places of the snapshot that the server still has, in order; maybe none.

    A server that cannot be read changes nothing.
    """
    key = Key(deployment.metadata.namespace, server_name(deployment))
    try:
        server = await ports.store.find(v2.InferenceServer, key)
    except Error:
        server = None
    targets = still_wanted(snapshot_of(deployment), server)
    return tuple(site_of(ports, deployment, target) for target in targets)


async def list_sites(ports: Ports, deployment: v2.Deployment) -> tuple[Site, ...]:
    """Return every place that may hold something of the Deployment. Raises `Trouble`.

    A server that is gone took its configs and routes with it; only what was recorded is looked at.
    """
    name = server_name(deployment)
    if not name:
        return ()
    try:
        server = await ports.store.find(
            v2.InferenceServer, Key(deployment.metadata.namespace, name)
        )
    except Error as error:
        raise Trouble("UnableToReadTargetClusters", str(error)) from error
    targets = everywhere(deployment, server)
    return tuple(site_of(ports, deployment, target) for target in targets)
