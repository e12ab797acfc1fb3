"""The places of a Deployment: those of its rollout, and all that may hold something of it."""

from maserve.base.errors import Error
from maserve.base.keys import Key
from maserve.deployment.stock.placement import (
    Place,
    candidate_place,
    everywhere,
    serving_place,
    still_wanted,
)
from maserve.deployment.stock.ports import Ports
from maserve.deployment.stock.site import Site, Trouble, site_of
from maserve.wire import v2


async def list_placed(
    ports: Ports, deployment: v2.Deployment, place: Place | None = None
) -> tuple[Site, ...]:
    """Return the sites of a place that its server still has, in order; maybe none.

    The serving place unless another is given. A server that cannot be read changes nothing.
    """
    where = place or serving_place(deployment)
    try:
        server = await ports.store.find(v2.InferenceServer, where.server)
    except Error:
        server = None
    targets = still_wanted(where.targets, server)
    return tuple(site_of(ports, deployment, target, where) for target in targets)


async def list_sites(ports: Ports, deployment: v2.Deployment, server: str) -> tuple[Site, ...]:
    """Return every site on a server that may hold something of the Deployment. Raises `Trouble`.

    A server that is gone took its configs and routes with it; only what was recorded is looked at.
    """
    if not server:
        return ()
    place = _find_place(deployment, server)
    try:
        found = await ports.store.find(v2.InferenceServer, place.server)
    except Error as error:
        raise Trouble("UnableToReadTargetClusters", str(error)) from error
    targets = everywhere(place.targets, found)
    return tuple(site_of(ports, deployment, target, place) for target in targets)


def _find_place(deployment: v2.Deployment, server: str) -> Place:
    """Return what is recorded of a server: it may be neither place, of an attempt before."""
    places = (serving_place(deployment), candidate_place(deployment))
    recorded = next((place for place in places if place.server.name == server), None)
    return recorded or Place(
        server=Key(deployment.metadata.namespace, server),
        targets=(),
        backend_type=v2.BACKEND_TYPE_TRITON,
    )
