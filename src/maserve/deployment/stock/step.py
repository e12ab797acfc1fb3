"""What every step of the stock plugin shares: its clock, its budget, its way to report trouble.

Trouble that a retry may clear is UNKNOWN until the budget, counted from the step's first attempt
and kept in the condition, is spent; only then FALSE (serving guide, Rollout Configuration;
behaviour 5.8). A step that was done and is not any more begins a new attempt: what happened before
it was done is not held against it.
"""

from abc import ABC, abstractmethod
from dataclasses import replace

from maserve.base.durations import render_duration
from maserve.conditions import (
    TRUE,
    UNKNOWN,
    Progress,
    false_condition,
    read_progress,
    true_condition,
    unknown_condition,
    write_progress,
)
from maserve.deployment.stock.ports import Ports
from maserve.deployment.stock.site import Trouble
from maserve.wire import api, v2


class Step(ABC):
    """A condition actor as `look`, without side effects, and `act`; both may raise `Trouble`."""

    budget_s: float | None = None
    """Seconds from the first attempt until the step fails; None: no limit."""

    timeout_reason = "Timeout"

    def __init__(self, type_: str, ports: Ports) -> None:
        self._type = type_
        self.ports = ports

    @property
    def type(self) -> str:
        return self._type

    async def retrieve(self, resource: v2.Deployment, previous: api.Condition) -> api.Condition:
        was_done = previous.status == TRUE
        try:
            condition = await self.look(resource, previous)
        except Trouble as trouble:
            condition = self.waiting(previous, trouble.text, trouble.reason)
        if was_done and condition.status != TRUE and self.budget_s is not None:
            _stop_clock(condition)
        return condition

    async def run(self, resource: v2.Deployment, previous: api.Condition) -> api.Condition:
        self._start_clock(previous)
        try:
            condition = await self.act(resource, previous)
        except Trouble as trouble:
            if trouble.permanent:
                return self.failed(previous, trouble.text, trouble.reason)
            condition = self.waiting(previous, trouble.text, trouble.reason)
        return self._or_timed_out(condition)

    def due_in_s(self, _resource: v2.Deployment, condition: api.Condition) -> float | None:
        """Return the seconds until the budget ends."""
        if self.budget_s is None:
            return None
        return max(0.0, self.budget_s - self.elapsed_s(condition))

    @abstractmethod
    async def look(self, resource: v2.Deployment, previous: api.Condition) -> api.Condition:
        """Tell how the step stands."""

    @abstractmethod
    async def act(self, resource: v2.Deployment, previous: api.Condition) -> api.Condition:
        """Do the step's work."""

    def done(self, previous: api.Condition) -> api.Condition:
        return true_condition(previous, self.ports.now_s())

    def waiting(self, previous: api.Condition, text: str, reason: str) -> api.Condition:
        return unknown_condition(previous, text, reason, self.ports.now_s())

    def failed(self, previous: api.Condition, text: str, reason: str) -> api.Condition:
        return false_condition(previous, text, reason, self.ports.now_s())

    def latch(self, previous: api.Condition) -> api.Condition:
        """Make it TRUE and remember so: later passes of this attempt need not look again."""
        now_s = self.ports.now_s()
        progress = read_progress(previous)
        write_progress(previous, replace(progress, done=True, completed_at=now_s))
        return self.done(previous)

    def elapsed_s(self, condition: api.Condition) -> float:
        """Return the seconds since the step's first attempt, 0 before it."""
        started = read_progress(condition).started_at
        return max(0.0, self.ports.now_s() - started) if started else 0.0

    def _start_clock(self, condition: api.Condition) -> Progress:
        progress = read_progress(condition)
        if not progress.started_at:
            progress = replace(progress, started_at=self.ports.now_s())
            write_progress(condition, progress)
        return progress

    def _or_timed_out(self, condition: api.Condition) -> api.Condition:
        if condition.status != UNKNOWN or self.budget_s is None:
            return condition
        if self.elapsed_s(condition) < self.budget_s:
            return condition
        text = (
            f"{condition.reason}: {condition.message} "
            f"(still failing after {render_duration(self.budget_s)})"
        )
        return self.failed(condition, text, self.timeout_reason)


def _stop_clock(condition: api.Condition) -> None:
    write_progress(condition, replace(read_progress(condition), started_at=0.0))
