"""Would every request be answered? The judgement of one cluster, and of all together. Pure.

HEALTHY is about callers: a cluster serves when its route leads to a model of the Deployment, some
replica takes requests, and each one that does has that model READY. Replicas that are missing
beside it make it weaker, not ill (ADR 0021; behaviour 5.5 wants every replica).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum

from maserve.backends import LoadReport, LoadState, ReplicaLoad, ReplicaStatus
from maserve.base.keys import ClusterId, ModelName, ReplicaName

_FAILED = "FAILED"


class Grade(IntEnum):
    """How well requests are served, the worst last."""

    SERVING = 0
    PROGRESSING = 1
    """A replica is on its way that has not served yet: a scale-up, a new template."""
    DEGRADED = 2
    """A replica is missing that was there, or that does not come."""
    OUT = 3
    """A request sent now may not be answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The grade, and why it is not SERVING."""

    grade: Grade
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSeen:
    """What was seen of one cluster: where its route leads, and what its replicas say.

    `replicas` may be empty: not every backend tells of them. Then a replica that runs counts as one
    that takes requests.
    """

    cluster: ClusterId
    report: LoadReport
    replicas: tuple[ReplicaStatus, ...] = ()

    @property
    def model(self) -> ModelName:
        return self.report.model


HEALTHY = Health(grade=Grade.SERVING)


def worst(healths: Iterable[Health]) -> Health:
    """Return the worst grade with the reasons of all that have it."""
    found = tuple(healths)
    grade = max((health.grade for health in found), default=Grade.SERVING)
    texts = [health.text for health in found if health.grade is grade and health.text]
    return Health(grade=grade, text="; ".join(texts))


def judge(seen: ClusterSeen, now: datetime, grace_s: float) -> Health:
    """Judge one cluster; a replica younger than `grace_s` that has never served is on its way."""
    rows = {row.replica: row for row in seen.report.rows}
    taking = [name for name in _taking_requests(seen) if name in rows]
    where = f"cluster {seen.cluster}"
    if not taking:
        text = f"{where}: no replica takes requests{_reasons(seen, rows, taking)}"
        return Health(grade=Grade.OUT, text=text)
    lacking = [rows[name] for name in taking if rows[name].state is not LoadState.READY]
    if lacking:
        names = ", ".join(f"{row.replica}: {row.state} {row.reason}".strip() for row in lacking)
        text = f"{where}: model {seen.model} is missing on replicas that take requests ({names})"
        return Health(grade=Grade.OUT, text=text)
    if len(taking) >= seen.report.wanted:
        return HEALTHY
    count = f"{len(taking)} of {seen.report.wanted} replicas serve {seen.model}"
    text = f"{where}: {count}{_reasons(seen, rows, taking)}"
    return Health(grade=_grade_of_missing(seen, taking, now, grace_s), text=text)


def _taking_requests(seen: ClusterSeen) -> tuple[ReplicaName, ...]:
    if seen.replicas:
        return tuple(replica.name for replica in seen.replicas if replica.ready)
    return tuple(row.replica for row in seen.report.rows if row.running)


def _reasons(
    seen: ClusterSeen, rows: dict[ReplicaName, ReplicaLoad], taking: list[ReplicaName]
) -> str:
    """Say of each replica that is missing why it is, in brackets."""
    told = {replica.name: replica.reason for replica in seen.replicas}
    missing = [row for name, row in rows.items() if name not in taking]
    texts = [
        f"{row.replica}: {told.get(row.replica) or row.reason or row.state}" for row in missing
    ]
    return f" ({'; '.join(texts)})" if texts else ""


def _grade_of_missing(
    seen: ClusterSeen, taking: list[ReplicaName], now: datetime, grace_s: float
) -> Grade:
    rows = [row for row in seen.report.rows if row.replica not in taking]
    told = {replica.name: replica for replica in seen.replicas}
    is_coming = all(_is_coming(row, told.get(row.replica), now, grace_s) for row in rows)
    return Grade.PROGRESSING if is_coming else Grade.DEGRADED


def _is_coming(
    row: ReplicaLoad, replica: ReplicaStatus | None, now: datetime, grace_s: float
) -> bool:
    """Tell whether a replica is in its first start and has neither failed nor been too long."""
    if row.state is LoadState.FAILED or (
        replica and (replica.restarts or replica.state == _FAILED)
    ):
        return False
    return row.started is None or (now - row.started).total_seconds() < grace_s
