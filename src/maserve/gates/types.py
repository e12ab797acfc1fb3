"""What a gate answers."""

from dataclasses import dataclass
from enum import StrEnum


class Answer(StrEnum):
    """UNKNOWN: nobody could tell now; it neither stops a rollout nor starts a rollback."""

    PASSED = "passed"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One answer with its reason; the reason is empty when the gate passed."""

    answer: Answer
    reason: str = ""
