"""One cluster judged by its replicas, and the sentence about it in the message."""

from datetime import UTC, datetime, timedelta

import pytest

from maserve.backends import LoadReport, LoadState, ReplicaLoad, ReplicaStatus
from maserve.base.keys import ClusterId, ModelName, ReplicaName
from maserve.deployment.notes import Note, with_note, without_note
from maserve.deployment.stock.health import ClusterSeen, Grade, Health, judge, worst

NOW = datetime(2030, 1, 1, tzinfo=UTC)
GRACE_S = 60.0
YOUNG, OLD = NOW - timedelta(seconds=10), NOW - timedelta(seconds=100)
READY, LOADING, FAILED = LoadState.READY, LoadState.LOADING, LoadState.FAILED


def a_row(
    name: str, state: LoadState, *, reason: str = "", started: datetime | None = OLD
) -> ReplicaLoad:
    return ReplicaLoad(
        replica=ReplicaName(name),
        running=started is not None,
        state=state,
        reason=reason,
        started=started,
    )


def a_replica(
    name: str, *, ready: bool = True, reason: str = "", restarts: int = 0, state: str = "RUNNING"
) -> ReplicaStatus:
    return ReplicaStatus(
        name=ReplicaName(name), state=state, ready=ready, reason=reason, restarts=restarts
    )


def judged(rows: list[ReplicaLoad], replicas: list[ReplicaStatus], *, wanted: int = 2) -> Health:
    report = LoadReport(model=ModelName("m"), wanted=wanted, rows=tuple(rows))
    seen = ClusterSeen(cluster=ClusterId("c1"), report=report, replicas=tuple(replicas))
    return judge(seen, NOW, GRACE_S)


A, B = a_row("a", READY), a_row("b", READY)


@pytest.mark.parametrize(
    ("rows", "replicas", "grade", "text"),
    [
        pytest.param([A, B], [a_replica("a"), a_replica("b")], Grade.SERVING, "", id="all"),
        pytest.param([A, B], [], Grade.SERVING, "", id="backend-tells-no-replicas"),
        pytest.param(
            [], [], Grade.OUT, "cluster c1: no replica takes requests", id="no-replica-at-all"
        ),
        pytest.param(
            [A, B],
            [a_replica("a", ready=False, reason="x"), a_replica("b", ready=False, reason="y")],
            Grade.OUT,
            "cluster c1: no replica takes requests (a: x; b: y)",
            id="all-held-out",
        ),
        pytest.param(
            [A, a_row("b", FAILED, reason="stub died")],
            [a_replica("a"), a_replica("b")],
            Grade.OUT,
            "cluster c1: model m is missing on replicas that take requests (b: FAILED stub died)",
            id="one-answers-without-the-model",
        ),
        pytest.param(
            [A, a_row("b", LOADING, reason="loading", started=None)],
            [a_replica("a"), a_replica("b", ready=False)],
            Grade.PROGRESSING,
            "cluster c1: 1 of 2 replicas serve m (b: loading)",
            id="first-start",
        ),
        pytest.param(
            [A],
            [a_replica("a")],
            Grade.PROGRESSING,
            "cluster c1: 1 of 2 replicas serve m",
            id="not-made-yet",
        ),
        pytest.param(
            [A, a_row("b", LOADING, started=YOUNG)],
            [a_replica("a"), a_replica("b", ready=False, restarts=1, reason="starts")],
            Grade.DEGRADED,
            "cluster c1: 1 of 2 replicas serve m (b: starts)",
            id="restarts",
        ),
        pytest.param(
            [A, a_row("b", LOADING, started=OLD)],
            [a_replica("a"), a_replica("b", ready=False, reason="slow")],
            Grade.DEGRADED,
            "cluster c1: 1 of 2 replicas serve m (b: slow)",
            id="too-long",
        ),
        pytest.param(
            [A, a_row("b", FAILED, reason="bad", started=YOUNG)],
            [a_replica("a"), a_replica("b", ready=False)],
            Grade.DEGRADED,
            "cluster c1: 1 of 2 replicas serve m (b: bad)",
            id="load-failed",
        ),
        pytest.param(
            [A, a_row("b", LOADING, started=None)],
            [a_replica("a"), a_replica("b", ready=False, reason="no disk", state="FAILED")],
            Grade.DEGRADED,
            "cluster c1: 1 of 2 replicas serve m (b: no disk)",
            id="cannot-start",
        ),
        pytest.param(
            [A, B],
            [a_replica("a"), a_replica("b"), a_replica("z", ready=False, state="DRAINING")],
            Grade.SERVING,
            "",
            id="one-drains",
        ),
    ],
)
def test_a_cluster_is_judged_by_the_replicas_that_take_requests(
    rows: list[ReplicaLoad], replicas: list[ReplicaStatus], grade: Grade, text: str
) -> None:
    assert judged(rows, replicas) == Health(grade=grade, text=text)


def test_the_worst_cluster_counts_and_all_of_the_worst_are_named() -> None:
    def out(text: str) -> Health:
        return Health(grade=Grade.OUT, text=text)

    assert worst([]).grade is Grade.SERVING
    assert worst([out("c1"), Health(grade=Grade.DEGRADED, text="c2"), out("c3")]) == out("c1; c3")


@pytest.mark.parametrize("said", ["", "rollout of m2 failed (bad); rolling back to m1"])
def test_a_note_is_renewed_and_taken_away_without_touching_the_rest(said: str) -> None:
    once = with_note(said, Note.UNHEALTHY, "cluster c1: gone; Degraded: not a note of its own")
    twice = with_note(once, Note.DEGRADED, "cluster c2")

    assert once.startswith(said)
    assert twice == (f"{said}; Degraded: cluster c2" if said else "Degraded: cluster c2")
    assert without_note(once) == without_note(twice) == with_note(twice, None) == said
