"""What every step of the stock plugin shares: its clock, its budget, its way to report trouble.

Trouble that a retry may clear is UNKNOWN until the budget, counted from the step's first attempt
and kept in the condition, is spent; only then FALSE (serving guide, Rollout Configuration;
behaviour 5.8). A step that was done and is not any more begins a new attempt: what happened before
it was done is not held against it.

A patient step never fails: what it has still to do is housekeeping for a model that is live
everywhere, and no trouble with that may take the model down (ADR 0023).
"""

from abc import ABC, abstractmethod
from dataclasses import replace

from maserve.base.durations import render_duration
from maserve.conditions import (
    FALSE,
    TRUE,
    UNKNOWN,
    Progress,
    false_condition,
    find_condition,
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

    patient = False
    """Whether it is tried for ever: neither a budget nor trouble that no retry clears fails it."""

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
            if self.patient and read_progress(previous).done:
                return self.done(previous)  # nobody can tell now, and nothing may come of it
            condition = self.waiting(previous, trouble.text, trouble.reason)
        if was_done and condition.status != TRUE and self.budget_s is not None:
            _stop_clock(condition)
        return condition

    async def run(self, resource: v2.Deployment, previous: api.Condition) -> api.Condition:
        self._start_clock(previous)
        try:
            condition = await self.act(resource, previous)
        except Trouble as trouble:
            if self.patient:
                return self._tried_again(resource, previous, trouble.text, trouble.reason)
            if trouble.permanent:
                return self.failed(previous, trouble.text, trouble.reason)
            condition = self.waiting(previous, trouble.text, trouble.reason)
        if self.patient and condition.status == FALSE:
            return self._tried_again(resource, condition, condition.message, condition.reason)
        return self._or_timed_out(condition)

    def be_patient(self) -> None:
        """Make it a step that never fails."""
        self.patient, self.budget_s = True, None

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

    def _tried_again(
        self, resource: v2.Deployment, previous: api.Condition, text: str, reason: str
    ) -> api.Condition:
        """Say in condition and event what does not work; in an event once, when it begins."""
        known = find_condition(resource.status.conditions, self.type)
        if known is None or known.reason != reason:
            told = f"{self.type}: {reason}: {text}; the model is live, this is tried again"
            self.ports.recorder.warning(resource, "HousekeepingDelayed", told)
        return self.waiting(previous, text, reason)

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
