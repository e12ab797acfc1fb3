"""`CleanupComplete`: nothing of the Deployment is left, in any cluster or on the gateway."""

from maserve.base.keys import ModelName
from maserve.deployment.stock.discovery import discovery_of
from maserve.deployment.stock.ports import Ports
from maserve.deployment.stock.site import Site, Trouble
from maserve.deployment.stock.sites import list_sites
from maserve.deployment.stock.step import Step
from maserve.wire import api, v2

TYPE = "CleanupComplete"

_NO_MODEL = ModelName("")


class CleanupComplete(Step):
    """Removes the rules first, then every entry of this Deployment; trouble is retried without end.

    A server that is gone took its configs and routes with it: then nothing is left to do.
    """

    def __init__(self, ports: Ports) -> None:
        super().__init__(TYPE, ports)

    async def look(self, resource: v2.Deployment, previous: api.Condition) -> api.Condition:
        if await discovery_of(self.ports, resource).is_there():
            text = "the gateway still has the rule"
            return self.waiting(previous, text, "DiscoveryRouteStillExists")
        for site in await list_sites(self.ports, resource):
            if await site.has_rule():
                text = f"cluster {site.cluster} still has the traffic rule"
                return self.waiting(previous, text, "TrafficRouteStillExists")
            if left := await site.old_models(_NO_MODEL):
                text = f"still listed in cluster {site.cluster}: {', '.join(left)}"
                return self.waiting(previous, text, "ModelStillExistsInInferenceServer")
        return self.done(previous)

    async def act(self, resource: v2.Deployment, previous: api.Condition) -> api.Condition:
        await discovery_of(self.ports, resource).remove()
        failures: list[str] = []
        for site in await list_sites(self.ports, resource):
            try:
                await _clean(site)
            except Trouble as trouble:
                failures.append(f"cluster {site.cluster}: {trouble}")
        if failures:
            return self.waiting(previous, "; ".join(failures), "CleanupRetrying")
        return self.waiting(previous, "removed everywhere", "CleanupVerifying")


async def _clean(site: Site) -> None:
    await site.unroute("TrafficRouteRemovalFailed")
    for model in await site.old_models(_NO_MODEL):
        await site.remove_entry(model, "ModelUnloadingFailed")
