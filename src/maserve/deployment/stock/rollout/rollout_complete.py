"""`RolloutComplete`: the model is live; the last condition of a rollout."""

from maserve.conditions import read_progress
from maserve.deployment.stock.ports import Ports
from maserve.deployment.stock.step import Step
from maserve.resource.metadata import set_annotation
from maserve.wire import api, v2

TYPE = "RolloutComplete"

LEGACY = tuple(
    f"rollout.michelangelo.ai/{name}"
    for name in ("increment-percentage", "strategy", "in-progress", "start-time")
)
"""Annotations that older versions left behind (behaviour 1.4)."""


class RolloutComplete(Step):
    """Drops legacy annotations and records the completion; never without a single cluster."""

    def __init__(self, ports: Ports, clusters: int) -> None:
        super().__init__(TYPE, ports)
        self._clusters = clusters

    async def look(self, _resource: v2.Deployment, previous: api.Condition) -> api.Condition:
        if read_progress(previous).done:
            return self.done(previous)
        return self.waiting(previous, "earlier steps first", "CompletionTasksPending")

    async def act(self, resource: v2.Deployment, previous: api.Condition) -> api.Condition:
        if not self._clusters:
            return previous
        for name in LEGACY:
            set_annotation(resource, name, None)
        return self.latch(previous)
