"""`SoakComplete-<cluster>`: the cluster has served the model for the soak period."""

from dataclasses import replace

from maserve.base.durations import render_duration
from maserve.base.errors import Error
from maserve.conditions import TRUE, Progress, find_condition, read_progress, write_progress
from maserve.deployment.stock.gate import ask_gate
from maserve.deployment.stock.rollout import traffic
from maserve.deployment.stock.rollout.seen import missed_s, passed_s, seen
from maserve.deployment.stock.site import Site
from maserve.deployment.stock.step import Step
from maserve.gates import Answer
from maserve.resource import names
from maserve.wire import api, v2

TYPE = "SoakComplete"


class Soak(Step):
    """Counts the time in which the gate was seen to pass, over restarts (ADR 0022).

    While it does not pass, or cannot be asked, the soak stands still, and starts over once it
    passes again; that time in all has a budget. Where there is a previous model a failing gate is a
    rollback before this step is asked.
    """

    timeout_reason = "HealthGateTimeout"

    def __init__(self, site: Site, period_s: float) -> None:
        super().__init__(names.condition(TYPE, site.cluster), site.ports)
        self._site = site
        self._period_s = period_s
        self.budget_s = site.ports.settings.model_load_timeout_s

    async def look(self, resource: v2.Deployment, previous: api.Condition) -> api.Condition:
        progress = read_progress(previous)
        if progress.done:
            return self.done(previous)
        if progress.started_at and not self._has_lost_traffic(resource):
            return previous
        if progress.seen_at:
            write_progress(previous, replace(progress, seen_at=0.0, passed_s=0.0))
        text = f"cluster {self._site.cluster} has not begun to soak"
        return self.waiting(previous, text, "SoakNotStarted")

    async def act(self, resource: v2.Deployment, previous: api.Condition) -> api.Condition:
        trouble = await self._find_trouble(resource)
        progress = seen(read_progress(previous), self.ports.now_s(), well=not trouble)
        write_progress(previous, progress)
        if trouble:
            return self.waiting(previous, trouble, "HealthGateNotPassing")
        if self._left_s(progress) <= 0:
            return self.latch(previous)
        return self._soaking(previous, progress)

    def due_in_s(self, resource: v2.Deployment, condition: api.Condition) -> float | None:
        """Return the seconds until the soak is over, or the budget while it stands still."""
        progress = read_progress(condition)
        if progress.held or not progress.seen_at:
            return super().due_in_s(resource, condition)
        return max(0.0, self._left_s(progress))

    def elapsed_s(self, condition: api.Condition) -> float:
        """Return what counts against the budget: while the gate does not pass, such time in all."""
        progress = read_progress(condition)
        return missed_s(progress, self.ports.now_s()) if progress.held else 0.0

    def _has_lost_traffic(self, resource: v2.Deployment) -> bool:
        """Tell whether the switch before this step has to be made again: that is no serving."""
        type_ = names.condition(traffic.TYPE, self._site.cluster)
        switch = find_condition(resource.status.conditions, type_)
        return switch is not None and switch.status != TRUE

    async def _find_trouble(self, resource: v2.Deployment) -> str:
        """Return why the gate does not pass, nothing when it does."""
        try:
            verdict = await ask_gate(self.ports, resource)
        except Error as error:
            return str(error)
        return "" if verdict.answer is Answer.PASSED else verdict.reason

    def _left_s(self, progress: Progress) -> float:
        return self._period_s - passed_s(progress, self.ports.now_s())

    def _soaking(self, previous: api.Condition, progress: Progress) -> api.Condition:
        spent = render_duration(passed_s(progress, self.ports.now_s()))
        text = f"cluster {self._site.cluster}: {spent} of {render_duration(self._period_s)}"
        return self.waiting(previous, text, "Soaking")
