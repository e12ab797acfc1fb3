"""`SoakComplete-<cluster>`: the cluster has served the model for the soak period."""

from maserve.base.durations import render_duration
from maserve.conditions import read_progress
from maserve.deployment.stock.site import Site
from maserve.deployment.stock.step import Step
from maserve.resource import names
from maserve.wire import api, v2

TYPE = "SoakComplete"


class Soak(Step):
    """Waits on the wall clock from the first attempt, over restarts.

    The gates keep watching meanwhile.
    """

    def __init__(self, site: Site, period_s: float) -> None:
        super().__init__(names.condition(TYPE, site.cluster), site.ports)
        self._site = site
        self._period_s = period_s

    async def look(self, _resource: v2.Deployment, previous: api.Condition) -> api.Condition:
        if not read_progress(previous).started_at:
            text = f"cluster {self._site.cluster} has not begun to soak"
            return self.waiting(previous, text, "SoakNotStarted")
        if self._left_s(previous) <= 0:
            return self.done(previous)
        return self._soaking(previous)

    async def act(self, _resource: v2.Deployment, previous: api.Condition) -> api.Condition:
        return self._soaking(previous)

    def due_in_s(self, _resource: v2.Deployment, condition: api.Condition) -> float | None:
        return max(0.0, self._left_s(condition))

    def _left_s(self, condition: api.Condition) -> float:
        return self._period_s - self.elapsed_s(condition)

    def _soaking(self, previous: api.Condition) -> api.Condition:
        spent = render_duration(self.elapsed_s(previous))
        text = f"cluster {self._site.cluster}: {spent} of {render_duration(self._period_s)}"
        return self.waiting(previous, text, "Soaking")
