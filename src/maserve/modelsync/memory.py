"""What one process remembers between passes; none of it is needed after a restart."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from maserve.artifacts import Progress
from maserve.base.keys import ModelName
from maserve.modelsync.settings import SyncSettings
from maserve.modelsync.steps import Fault
from maserve.modelsync.types import (
    FAILURE_CONTENT,
    Action,
    Failure,
    ModelState,
    Step,
    Wanted,
)

_PERMANENT_RETRY_S = 60.0
"""A permanent failure is tried again too: somebody may repair the artifact, but not at once."""

_PUBLISH_RETRY_S = 30.0

_DEATHS_APART_S = 60.0
"""Deaths of one model that are further apart do not add up."""

_DEATHS_UNTIL_GIVEN_UP = 3
"""So many in a row, and loading the model anew does not help: the replica has to go."""

STUCK_UNWANTED_S = 30.0
"""A load that nobody wants any more and that goes on for so long is not going to end."""

# An engine may give pages: what is wrong stands in the first lines, where it happened in the last.
_MAX_REASON = 2000
_MAX_REASON_END = 500

_LOAD_STATES = (ModelState.LOADING, ModelState.LOAD_FAILED, ModelState.DEAD)


@dataclass(slots=True, kw_only=True)
class Memory:
    """Mutable; the loop and its runner alone have it, on one event loop."""

    wanted: Mapping[ModelName, Wanted] | None = None
    list_seen: bool = False
    list_signature: tuple[int, ...] = ()
    problem: str = ""
    warnings: frozenset[str] = frozenset()
    engine_answered: bool = False
    status_written: bool = True
    staged: set[tuple[ModelName, str]] = field(default_factory=set)
    held: set[str] = field(default_factory=set)
    releasing: set[str] = field(default_factory=set)
    busy: dict[ModelName, Action] = field(default_factory=dict)
    progress: dict[ModelName, Progress] = field(default_factory=dict)
    failures: dict[ModelName, Failure] = field(default_factory=dict)
    unwanted_since: Mapping[ModelName, float] = field(default_factory=dict)
    start_judged: bool = False
    first_serving: frozenset[ModelName] | None = None
    dead: dict[ModelName, str] = field(default_factory=dict)
    deaths: dict[ModelName, tuple[int, float]] = field(default_factory=dict)
    """How often each model died in a row, and when it last did."""
    moving_since: dict[ModelName, float] = field(default_factory=dict)
    """Since when the engine moves a model that no step of ours is about."""

    def note_list(self, signature: tuple[int, ...]) -> None:
        """Give what failed for good another try with every new list.

        An entry may have been taken out and put in again between two looks at it: that asks for the
        model anew, and the last answer is not one to that.
        """
        if signature != self.list_signature:
            self.failures = {
                model: failure
                for model, failure in self.failures.items()
                if not failure.permanent or failure.content == FAILURE_CONTENT
            }
        self.list_signature = signature

    def note_fault(
        self, action: Action, fault: Fault, *, settings: SyncSettings, now: float
    ) -> Failure:
        """Remember a failed step and when to try again; failures in a row of one content add up.

        What was loaded in vain is looked at again first: it may be damaged, or gone.
        """
        if action.step is Step.LOAD:
            self.staged.discard((action.model, action.content))
        before = self.failures.get(action.model)
        count = before.count + 1 if before and before.content == action.content else 1
        failure = Failure(
            state=fault.state,
            content=action.content,
            reason=_shortened(fault.reason),
            permanent=fault.permanent,
            hidden=fault.hidden,
            count=count,
            retry_at=now + _delay_s(fault, count, settings),
        )
        self.failures[action.model] = failure
        return failure

    def note_death(
        self, model: ModelName, want: Wanted, *, settings: SyncSettings, now: float
    ) -> Failure:
        """Remember that a loaded model is dead: it is loaded anew at once, then after pauses."""
        before, last_s = self.deaths.get(model, (0, now))
        count = before + 1 if now - last_s < _DEATHS_APART_S else 1
        self.deaths[model] = count, now
        is_given_up = count >= _DEATHS_UNTIL_GIVEN_UP
        vain = f", {count} times in a row: loading it anew does not help" if is_given_up else ""
        self.dead[model] = f"a process in which it runs has ended{vain}"
        failure = Failure(
            state=ModelState.DEAD,
            content=want.content,
            reason=self.dead[model],
            permanent=is_given_up,
            hidden=False,
            count=count,
            retry_at=now if count == 1 else now + settings.load_backoff.delay_s(count - 1),
        )
        self.failures[model] = failure
        return failure

    def note_moving(self, moving: frozenset[ModelName], now: float) -> None:
        """Remember since when the engine moves models by itself."""
        idle = moving - self.busy.keys()
        self.moving_since = {model: self.moving_since.get(model, now) for model in idle}

    def note_published(self, action: Action, *, shown: bool, now: float) -> None:
        failure = self.failures.get(action.model)
        if failure is not None and failure.content == action.content:
            self.failures[action.model] = replace(
                failure, hidden=not shown, publish_at=now + _PUBLISH_RETRY_S
            )

    def note_success(self, action: Action) -> None:
        """Forget the failure that a step has overcome; staging does not undo a failed load."""
        failure = self.failures.get(action.model)
        kept = action.step is Step.STAGE and failure is not None and failure.state in _LOAD_STATES
        if action.step is not Step.PUBLISH and not kept:
            self.failures.pop(action.model, None)
        if action.step is not Step.STAGE:
            self.dead.pop(action.model, None)

    def forget_outdated(self) -> None:
        """Drop what concerns contents that nobody wants any more."""
        wanted = self.wanted or {}
        self.failures = {
            model: failure
            for model, failure in self.failures.items()
            if failure.content == (wanted[model].content if model in wanted else FAILURE_CONTENT)
        }
        self.dead = {model: why for model, why in self.dead.items() if model in wanted}
        self.progress = {model: p for model, p in self.progress.items() if model in self.busy}


def _shortened(reason: str) -> str:
    if len(reason) <= _MAX_REASON:
        return reason
    return f"{reason[: _MAX_REASON - _MAX_REASON_END]} … {reason[-_MAX_REASON_END:]}"


def _delay_s(fault: Fault, count: int, settings: SyncSettings) -> float:
    if fault.state in (ModelState.DOWNLOAD_FAILED, ModelState.VERIFY_FAILED):
        delay = settings.download_backoff.delay_s(count)
        return max(delay, _PERMANENT_RETRY_S) if fault.permanent else delay
    return settings.load_backoff.delay_s(count)
