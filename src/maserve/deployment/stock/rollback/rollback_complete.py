"""`RollbackComplete`: the discovery route is reconciled; the last condition of a rollback."""

from maserve.deployment.keys import current, server_name
from maserve.deployment.places import other_servers
from maserve.deployment.stock.discovery import discovery_of
from maserve.deployment.stock.ports import Ports
from maserve.deployment.stock.sites import list_sites
from maserve.deployment.stock.step import Step
from maserve.deployment.stock.withdrawal import Remnant, find_remnant, withdraw
from maserve.wire import api, v2

TYPE = "RollbackComplete"


class RollbackComplete(Step):
    """With a previous model the rule is there and live; without one the Deployment leaves.

    It also stays while any cluster has traffic: then something is served that the status forgot.
    What a move has made on another server goes last: until then both paths answer (ADR 0016).
    """

    timeout_reason = "RollbackTimeout"

    def __init__(self, ports: Ports) -> None:
        super().__init__(TYPE, ports)
        self.budget_s = ports.settings.rollback_model_load_timeout_s

    async def look(self, resource: v2.Deployment, previous: api.Condition) -> api.Condition:
        problem = await self._find_misfit(resource)
        if problem is not None:
            return self.waiting(previous, problem.text, problem.reason)
        remnant = await find_remnant(self.ports, resource, _others(resource))
        if remnant is not None:
            return self.waiting(previous, remnant.text, remnant.reason)
        return self.done(previous)

    async def act(self, resource: v2.Deployment, previous: api.Condition) -> api.Condition:
        if await self._find_misfit(resource) is None:
            failures = await withdraw(self.ports, resource, _others(resource))
            if failures:
                return self.waiting(previous, "; ".join(failures), "CleanupRetrying")
            return self.waiting(previous, "removed, being looked at once more", "CleanupVerifying")
        rule = discovery_of(self.ports, resource)
        if current(resource):
            await rule.add()
            text = "the gateway is taking up the rule"
            return self.waiting(previous, text, "DiscoveryRouteNotReady")
        await rule.remove()
        return self.waiting(previous, "the rule is removed", "DiscoveryRouteStillPresent")

    async def _find_misfit(self, resource: v2.Deployment) -> Remnant | None:
        """Return how the gateway does not lead to just what is served; None when it does."""
        rule = discovery_of(self.ports, resource)
        if back := current(resource):
            text = f"the gateway does not lead to {back}"
            misfit = Remnant(reason="DiscoveryRouteNotReady", text=text)
            return None if await rule.is_live() else misfit
        if not await rule.is_there():
            return None
        for site in await list_sites(self.ports, resource, server_name(resource)):
            if await site.has_rule():
                return None
        text = "the gateway still has the rule of the model that failed"
        return Remnant(reason="DiscoveryRouteStillPresent", text=text)


def _others(deployment: v2.Deployment) -> tuple[str, ...]:
    return other_servers(deployment, server_name(deployment))
