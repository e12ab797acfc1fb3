"""`PreviousServerCleanupComplete`: a Deployment that has moved is gone from where it was."""

from maserve.deployment.keys import candidate
from maserve.deployment.places import candidate_server, other_servers
from maserve.deployment.stock.discovery import discovery_of
from maserve.deployment.stock.ports import Ports
from maserve.deployment.stock.step import Step
from maserve.deployment.stock.withdrawal import find_remnant, withdraw
from maserve.wire import api, v2

TYPE = "PreviousServerCleanupComplete"


class PreviousServerCleanup(Step):
    """Takes the Deployment off every other server once its new path was seen to answer (ADR 0016).

    Retried without end: the model is live, and what cannot be removed is no reason to undo that.
    """

    def __init__(self, ports: Ports) -> None:
        super().__init__(TYPE, ports)

    async def look(self, resource: v2.Deployment, previous: api.Condition) -> api.Condition:
        remnant = await find_remnant(self.ports, resource, _others(resource))
        if remnant is None:
            return self.done(previous)
        return self.waiting(previous, remnant.text, remnant.reason)

    async def act(self, resource: v2.Deployment, previous: api.Condition) -> api.Condition:
        model, server = candidate(resource), candidate_server(resource)
        answering = await discovery_of(self.ports, resource, server).find_answering_model()
        if answering not in (model, None):
            who = f"model {answering}" if answering else "no model"
            text = f"a request to the gateway for server {server} is answered by {who}"
            return self.waiting(previous, text, "NewPathNotAnswering")
        failures = await withdraw(self.ports, resource, _others(resource))
        if failures:
            return self.waiting(previous, "; ".join(failures), "CleanupRetrying")
        return self.waiting(previous, "removed, being looked at once more", "CleanupVerifying")


def _others(deployment: v2.Deployment) -> tuple[str, ...]:
    return other_servers(deployment, candidate_server(deployment))
