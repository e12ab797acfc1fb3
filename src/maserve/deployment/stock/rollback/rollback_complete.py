"""`RollbackComplete`: the discovery route is reconciled; the last condition of a rollback."""

from maserve.deployment.keys import current
from maserve.deployment.stock.discovery import discovery_of
from maserve.deployment.stock.ports import Ports
from maserve.deployment.stock.sites import list_sites
from maserve.deployment.stock.step import Step
from maserve.wire import api, v2

TYPE = "RollbackComplete"


class RollbackComplete(Step):
    """With a previous model the rule is there and live; without one the Deployment leaves.

    It also stays while any cluster has traffic: then something is served that the status forgot.
    """

    timeout_reason = "RollbackTimeout"

    def __init__(self, ports: Ports) -> None:
        super().__init__(TYPE, ports)
        self.budget_s = ports.settings.rollback_model_load_timeout_s

    async def look(self, resource: v2.Deployment, previous: api.Condition) -> api.Condition:
        rule = discovery_of(self.ports, resource)
        if back := current(resource):
            if await rule.is_live():
                return self.done(previous)
            text = f"the gateway does not lead to {back}"
            return self.waiting(previous, text, "DiscoveryRouteNotReady")
        if not await rule.is_there():
            return self.done(previous)
        for site in await list_sites(self.ports, resource):
            if await site.has_rule():
                return self.done(previous)
        text = "the gateway still has the rule of the model that failed"
        return self.waiting(previous, text, "DiscoveryRouteStillPresent")

    async def act(self, resource: v2.Deployment, previous: api.Condition) -> api.Condition:
        rule = discovery_of(self.ports, resource)
        if current(resource):
            await rule.add()
            text = "the gateway is taking up the rule"
            return self.waiting(previous, text, "DiscoveryRouteNotReady")
        await rule.remove()
        return self.waiting(previous, "the rule is removed", "DiscoveryRouteStillPresent")
