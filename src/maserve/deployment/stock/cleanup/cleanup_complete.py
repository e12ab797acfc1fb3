"""`CleanupComplete`: nothing of the Deployment is left, in any cluster or on the gateway."""

from maserve.deployment.places import known_servers
from maserve.deployment.stock.ports import Ports
from maserve.deployment.stock.step import Step
from maserve.deployment.stock.withdrawal import find_remnant, withdraw
from maserve.wire import api, v2

TYPE = "CleanupComplete"


class CleanupComplete(Step):
    """Removes the rules first, then every entry of this Deployment; trouble is retried without end.

    On every server that may hold something of it.
    """

    def __init__(self, ports: Ports) -> None:
        super().__init__(TYPE, ports)

    async def look(self, resource: v2.Deployment, previous: api.Condition) -> api.Condition:
        remnant = await find_remnant(self.ports, resource, known_servers(resource))
        if remnant is None:
            return self.done(previous)
        return self.waiting(previous, remnant.text, remnant.reason)

    async def act(self, resource: v2.Deployment, previous: api.Condition) -> api.Condition:
        failures = await withdraw(self.ports, resource, known_servers(resource))
        if failures:
            return self.waiting(previous, "; ".join(failures), "CleanupRetrying")
        return self.waiting(previous, "removed everywhere", "CleanupVerifying")
