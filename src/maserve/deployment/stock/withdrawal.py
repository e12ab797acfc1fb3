"""Taking everything of a Deployment off inference servers: routes first, then the entries.

For a cleanup, for the server that a Deployment has moved away from, and for the one that a move did
not reach. A server that is gone took its configs and routes with it: nothing is left to do there.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from maserve.base.keys import ModelName
from maserve.deployment.stock.discovery import discovery_of
from maserve.deployment.stock.ports import Ports
from maserve.deployment.stock.site import Site, Trouble
from maserve.deployment.stock.sites import list_sites
from maserve.wire import v2

_NO_MODEL = ModelName("")


@dataclass(frozen=True, slots=True, kw_only=True)
class Remnant:
    """Something of a Deployment that is still there, as a reason and a sentence."""

    reason: str
    text: str


async def find_remnant(
    ports: Ports, deployment: v2.Deployment, servers: Iterable[str]
) -> Remnant | None:
    """Return the first thing that is still there, None when nothing is. Raises `Trouble`."""
    for server in servers:
        remnant = await _find_on(ports, deployment, server)
        if remnant is not None:
            return remnant
    return None


async def withdraw(
    ports: Ports, deployment: v2.Deployment, servers: Iterable[str]
) -> tuple[str, ...]:
    """Take everything away, as far as it can be done now; return what could not, as sentences.

    Raises `Trouble` when a route of the control plane, or a server, cannot be looked at.
    """
    failures: list[str] = []
    for server in servers:
        await discovery_of(ports, deployment, server).remove()
        for site in await list_sites(ports, deployment, server):
            try:
                await _clear(site)
            except Trouble as trouble:
                failures.append(f"cluster {site.cluster}: {trouble}")
    return tuple(failures)


async def _find_on(ports: Ports, deployment: v2.Deployment, server: str) -> Remnant | None:
    if await discovery_of(ports, deployment, server).is_there():
        text = f"the gateway still has the rule on server {server}"
        return Remnant(reason="DiscoveryRouteStillExists", text=text)
    for site in await list_sites(ports, deployment, server):
        where = f"cluster {site.cluster} of server {server}"
        if await site.has_rule():
            text = f"{where} still has the traffic rule"
            return Remnant(reason="TrafficRouteStillExists", text=text)
        if left := await site.old_models(_NO_MODEL):
            text = f"{where} still lists {', '.join(left)}"
            return Remnant(reason="ModelStillExistsInInferenceServer", text=text)
    return None


async def _clear(site: Site) -> None:
    await site.unroute("TrafficRouteRemovalFailed")
    for model in await site.old_models(_NO_MODEL):
        await site.remove_entry(model, "ModelUnloadingFailed")
