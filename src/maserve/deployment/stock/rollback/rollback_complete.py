"""`RollbackComplete`: the discovery route is reconciled; the last condition of a rollback."""

from maserve.deployment.keys import current, server_name
from maserve.deployment.places import other_servers
from maserve.deployment.stock.discovery import discovery_of
from maserve.deployment.stock.ports import Ports
from maserve.deployment.stock.sites import list_sites
from maserve.deployment.stock.step import Step
from maserve.deployment.stock.withdrawal import find_remnant, withdraw
from maserve.wire import api, v2

TYPE = "RollbackComplete"


class RollbackComplete(Step):
    """With a previous model the rule stays; without one the Deployment leaves the gateway.

    It also stays while any cluster has traffic: then something is served that the status forgot.
    What a move has made on another server goes last: until then both paths answer (ADR 0016).
    """

    timeout_reason = "RollbackTimeout"

    def __init__(self, ports: Ports) -> None:
        super().__init__(TYPE, ports)
        self.budget_s = ports.settings.rollback_model_load_timeout_s

    async def look(self, resource: v2.Deployment, previous: api.Condition) -> api.Condition:
        if not await self._fits(resource):
            text = "the gateway still has the rule of the model that failed"
            return self.waiting(previous, text, "DiscoveryRouteStillPresent")
        remnant = await find_remnant(self.ports, resource, _others(resource))
        if remnant is not None:
            return self.waiting(previous, remnant.text, remnant.reason)
        return self.done(previous)

    async def act(self, resource: v2.Deployment, previous: api.Condition) -> api.Condition:
        if not await self._fits(resource):
            await discovery_of(self.ports, resource).remove()
            return self.waiting(previous, "the rule is removed", "DiscoveryRouteStillPresent")
        failures = await withdraw(self.ports, resource, _others(resource))
        if failures:
            return self.waiting(previous, "; ".join(failures), "CleanupRetrying")
        return self.waiting(previous, "removed, being looked at once more", "CleanupVerifying")

    async def _fits(self, resource: v2.Deployment) -> bool:
        """Tell whether the gateway leads to what is served, and to nothing when nothing is."""
        if current(resource) or not await discovery_of(self.ports, resource).is_there():
            return True
        sites = await list_sites(self.ports, resource, server_name(resource))
        return any([await site.has_rule() for site in sites])


def _others(deployment: v2.Deployment) -> tuple[str, ...]:
    return other_servers(deployment, server_name(deployment))
