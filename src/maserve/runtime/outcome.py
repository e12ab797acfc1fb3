"""What one pass over an object says about the next one."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Done:
    """At rest: an event, or the informers' resync, brings the object back."""


@dataclass(frozen=True, slots=True)
class Again:
    """Something moved: look again at once."""


@dataclass(frozen=True, slots=True)
class After:
    """Look again in `seconds`, unless an event comes first."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Stop:
    """No retry helps; only an event brings the object back. `reason` is logged."""

    reason: str


Outcome = Done | Again | After | Stop
