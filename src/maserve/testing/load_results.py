"""What came of a load: one sample a request, and their summary."""

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

_MOST_TEXTS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What came of one request: the answer's status and JSON, or `error`.

    `attempted` is False when the request never left this side.
    """

    status: int = 0
    body: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""
    attempted: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One request of the schedule; times in seconds, `scheduled_s` since the start of the load."""

    scheduled_s: float
    lateness_s: float
    latency_s: float
    kept_alive: bool
    reply: Reply
    wrong: str = ""

    @property
    def failure(self) -> str:
        """Why the server failed the request, empty when it did not."""
        if not self.reply.attempted:
            return ""
        if self.reply.error:
            return self.reply.error
        return "" if self.reply.status == 200 else f"HTTP {self.reply.status}"

    @property
    def model(self) -> str:
        """Which model answered, empty when none did."""
        return str(self.reply.body.get("model_name", ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Requests that failed with the same text; `first_s` is when the first of them was due."""

    text: str
    count: int
    first_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSummary:
    """What came of a load: `sent` = `ok` + `wrong` + `failed`.

    `late` requests are among `sent`; `not_sent` ones are nowhere else, `client_problems` says why.
    `failures` has the texts of failed and wrong ones. Latencies count from the real start.
    """

    sent: int = 0
    ok: int = 0
    wrong: int = 0
    failed: int = 0
    late: int = 0
    not_sent: int = 0
    new_connections: int = 0
    duration_s: float = 0.0
    answered_by: Mapping[str, int] = field(default_factory=dict)
    failures: tuple[Failure, ...] = ()
    client_problems: Mapping[str, int] = field(default_factory=dict)
    latency_ms: Mapping[str, float] = field(default_factory=dict)

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json`, or the program, wrote. Raises ValueError for anything else."""
        fields = json.loads(text)
        failures = tuple(Failure(**row) for row in fields.pop("failures"))
        return cls(failures=failures, **fields)


def summarize(samples: Sequence[Sample], *, late_after_s: float, duration_s: float) -> LoadSummary:
    """Count what came of the requests, whatever order they ended in."""
    sent = [sample for sample in samples if sample.reply.attempted]
    not_sent = [sample for sample in samples if not sample.reply.attempted]
    failed = sum(bool(sample.failure) for sample in sent)
    wrong = sum(bool(sample.wrong) for sample in sent)
    return LoadSummary(
        sent=len(sent),
        ok=len(sent) - failed - wrong,
        wrong=wrong,
        failed=failed,
        late=sum(sample.lateness_s > late_after_s for sample in sent),
        not_sent=len(not_sent),
        new_connections=sum(not sample.kept_alive for sample in sent),
        duration_s=round(duration_s, 3),
        answered_by=dict(sorted(Counter(s.model for s in sent if s.model).items())),
        failures=_failures(sent),
        client_problems=dict(Counter(s.reply.error for s in not_sent).most_common(_MOST_TEXTS)),
        latency_ms=_percentiles([s.latency_s * 1000 for s in sent if not s.failure]),
    )


def _failures(sent: Sequence[Sample]) -> tuple[Failure, ...]:
    first: dict[str, float] = {}
    counts: Counter[str] = Counter()
    for sample in sorted(sent, key=lambda each: each.scheduled_s):
        text = sample.failure or sample.wrong
        if text:
            counts[text] += 1
            first.setdefault(text, round(sample.scheduled_s, 3))
    return tuple(
        Failure(text=text, count=count, first_s=first[text])
        for text, count in counts.most_common(_MOST_TEXTS)
    )


def _percentiles(values: list[float]) -> dict[str, float]:
    """Return nearest-rank percentiles, nothing when there is nothing to rank."""
    if not values:
        return {}
    ordered = sorted(values)
    ranks = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}
    return {
        name: round(ordered[max(0, math.ceil(share * len(ordered)) - 1)], 2)
        for name, share in ranks.items()
    }
