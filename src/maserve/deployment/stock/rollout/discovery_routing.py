"""`DiscoveryRoutingConfigured`: the Deployment is on the control plane's discovery route."""

from maserve.deployment.places import candidate_server
from maserve.deployment.stock.discovery import discovery_of
from maserve.deployment.stock.ports import Ports
from maserve.deployment.stock.step import Step
from maserve.wire import api, v2


class DiscoveryRouting(Step):
    """Adds the rule after every cluster serves the model, so that the first request finds it."""

    patient = True

    def __init__(self, ports: Ports) -> None:
        super().__init__("DiscoveryRoutingConfigured", ports)

    async def look(self, resource: v2.Deployment, previous: api.Condition) -> api.Condition:
        server = candidate_server(resource)
        if await discovery_of(self.ports, resource, server).is_live():
            return self.done(previous)
        return self.waiting(previous, "the gateway has no rule yet", "DiscoveryRouteNotReady")

    async def act(self, resource: v2.Deployment, previous: api.Condition) -> api.Condition:
        await discovery_of(self.ports, resource, candidate_server(resource)).add()
        text = "the gateway is taking up the rule"
        return self.waiting(previous, text, "DiscoveryRouteNotReady")
