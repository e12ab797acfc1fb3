"""What a serving framework's replicas look like from here."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from maserve.base.keys import ModelName, ReplicaName


class ServerState(StrEnum):
    """State of one inference server in one cluster (guide: Backend.GetServerStatus)."""

    CREATE_PENDING = "CREATE_PENDING"
    CREATING = "CREATING"
    SERVING = "SERVING"
    FAILED = "FAILED"
    DELETING = "DELETING"


class LoadState(StrEnum):
    """State of one model on one replica."""

    LOADING = "LOADING"
    READY = "READY"
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaStatus:
    """One replica for people: lifecycle state, whether it admits traffic, where it answers.

    `pid` and `address` are empty outside the embedded mode; `reason` says why it is not ready.
    """

    name: ReplicaName
    state: str
    ready: bool
    reason: str = ""
    pid: int = 0
    address: str = ""
    restarts: int = 0
    started: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStatus:
    """State of one server in one cluster.

    SERVING means: every wanted replica runs the wanted template and is ready. `up_to_date` is False
    while running replicas still differ from what the InferenceServer asks for.
    """

    state: ServerState
    message: str = ""
    up_to_date: bool = True
    replicas: tuple[ReplicaStatus, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaLoad:
    """One model on one replica. `running` is False while the replica itself cannot answer.

    `started` is when the replica's process began, None when unknown.
    """

    replica: ReplicaName
    running: bool
    state: LoadState
    reason: str = ""
    started: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadReport:
    """One model on all replicas of one server in one cluster.

    `rows` has one row per replica, by name, terminating ones left out; `wanted` is how many there
    should be.
    """

    model: ModelName
    wanted: int
    rows: tuple[ReplicaLoad, ...] = field(default_factory=tuple)


def is_loaded(report: LoadReport) -> bool:
    """Tell whether every wanted replica serves the model.

    True only if `wanted > 0`, there are at least `wanted` rows, and every row is READY: zero
    replicas or an empty index is never "all ready".
    Source: serving guide, Deployment Lifecycle, "Rolling load".
    """
    return (
        report.wanted > 0
        and len(report.rows) >= report.wanted
        and all(row.state is LoadState.READY for row in report.rows)
    )


def find_failed(report: LoadReport) -> ReplicaLoad | None:
    """Return the first replica that reports a failed load, None when there is none."""
    return next((row for row in report.rows if row.state is LoadState.FAILED), None)


def summary(report: LoadReport) -> str:
    """Return one line for people: `1/2 replicas ready, 1 running (pod-b: LOADING reason)`."""
    ready = sum(row.state is LoadState.READY for row in report.rows)
    running = sum(row.running for row in report.rows)
    rest = ", ".join(
        f"{row.replica}: {row.state}{' ' + row.reason if row.reason else ''}"
        for row in report.rows
        if row.state is not LoadState.READY
    )
    tail = f" ({rest})" if rest else ""
    return f"{ready}/{report.wanted} replicas ready, {running} running{tail}"
