"""What a gate answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Answer(StrEnum):
    """Whether what a gate watches is well.

    UNKNOWN: nobody could tell now. It starts no rollback, and a soak stands still meanwhile. A gate
    whose silence shall hold nothing (a metric query that cannot be answered, unless it fails
    closed) answers PASSED instead.
    """

    PASSED = "passed"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One answer with its reason; the reason is empty when the gate passed.

    `is_short` tells that a replica is missing, or not loaded and of unknown age: that passes for a
    while only, so whoever asks remembers since when it is so and says it the next time.
    """

    answer: Answer
    reason: str = ""
    is_short: bool = False


def combined(verdicts: Sequence[Verdict]) -> Verdict:
    """Return one verdict for all: the first failure, else what nobody could tell, else passed."""
    is_short = any(verdict.is_short for verdict in verdicts)
    failed = next((each for each in verdicts if each.answer is Answer.FAILED), None)
    if failed is not None:
        return Verdict(answer=Answer.FAILED, reason=failed.reason, is_short=is_short)
    unknown = [each.reason for each in verdicts if each.answer is Answer.UNKNOWN]
    answer = Answer.UNKNOWN if unknown else Answer.PASSED
    return Verdict(answer=answer, reason="; ".join(unknown), is_short=is_short)
