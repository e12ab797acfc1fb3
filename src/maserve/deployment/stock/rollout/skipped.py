"""A step that settings or strategy leave out: its condition says so (serving guide, Blast)."""

from maserve.conditions import true_condition
from maserve.deployment.stock.ports import Ports
from maserve.deployment.stock.step import Step
from maserve.wire import api, v2


class Skipped(Step):
    """Is TRUE from the start, with the reason `Skipped`: whoever waits for it waits for nothing."""

    def __init__(self, type_: str, ports: Ports, text: str) -> None:
        super().__init__(type_, ports)
        self._text = text

    async def look(self, _resource: v2.Deployment, previous: api.Condition) -> api.Condition:
        return true_condition(previous, self.ports.now_s(), message=self._text, reason="Skipped")

    async def act(self, _resource: v2.Deployment, previous: api.Condition) -> api.Condition:
        return previous
