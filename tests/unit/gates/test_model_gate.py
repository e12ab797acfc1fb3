"""The model gate: only the Deployment's own serving models are judged (serving guide)."""

from datetime import timedelta

import pytest

from maserve.backends import LoadReport, LoadState, ReplicaLoad
from maserve.base.errors import Unavailable
from maserve.base.keys import ClusterId, ModelName, ReplicaName
from maserve.gates import Answer, ModelGate, Verdict, combined, is_acceptable
from maserve.modelconfig import Phase
from maserve.testing.builders import SERVER, a_target
from maserve.testing.clock import EPOCH
from maserve.testing.control_rig import ControlRig

READY, LOADING, FAILED = LoadState.READY, LoadState.LOADING, LoadState.FAILED
GRACE_S = 60.0

Seen = tuple[LoadState, float | None]
"""A replica's load state and its age in seconds, None when unknown."""


def report_of(*seen: Seen, wanted: int | None = None) -> LoadReport:
    rows = tuple(
        ReplicaLoad(
            replica=ReplicaName(f"r-{n}"),
            running=True,
            state=state,
            started=None if age_s is None else EPOCH - timedelta(seconds=age_s),
        )
        for n, (state, age_s) in enumerate(seen)
    )
    return LoadReport(
        model=ModelName("m1"), wanted=len(rows) if wanted is None else wanted, rows=rows
    )


@pytest.mark.parametrize(
    ("report", "acceptable"),
    [
        pytest.param(report_of((READY, 900), (READY, 900)), True, id="all-ready"),
        pytest.param(report_of(), False, id="no-replica"),
        pytest.param(report_of((READY, 900), wanted=2), True, id="one-being-made"),
        pytest.param(report_of((READY, 900), (LOADING, 5)), True, id="one-starting"),
        pytest.param(report_of((READY, 900), (LOADING, 59.9)), True, id="just-within-the-grace"),
        pytest.param(report_of((READY, 900), (LOADING, 60)), False, id="grace-over"),
        pytest.param(report_of((READY, 900), (LOADING, None)), True, id="start-unknown"),
        pytest.param(report_of((READY, 900), (FAILED, 5)), False, id="a-failed-load-has-no-grace"),
        pytest.param(report_of((LOADING, 5), (LOADING, 5)), False, id="nobody-serves"),
        pytest.param(report_of((LOADING, 5), wanted=1), False, id="the-only-one-starts"),
        pytest.param(
            report_of((READY, 900), (LOADING, 5), (LOADING, 900)), False, id="one-of-two-is-old"
        ),
    ],
)
def test_a_starting_replica_is_not_judged_while_another_serves(
    report: LoadReport, acceptable: bool
) -> None:
    assert is_acceptable(report, EPOCH, GRACE_S) is acceptable


async def judge(
    rig: ControlRig, *clusters: str, deployment: str = "d", short_s: float | None = None
) -> Verdict:
    """Judge; `short_s` is for how long a gate has found a replica to be missing."""
    gate = ModelGate(model_config=rig.model_config, clock=rig.clock, start_grace_s=GRACE_S)
    targets = [a_target(cluster) for cluster in clusters]
    since = None if short_s is None else rig.clock.now() - timedelta(seconds=short_s)
    return await gate.judge(rig.backend, SERVER, targets, deployment, short_since=since)


async def test_a_model_that_is_loaded_everywhere_passes(rig: ControlRig) -> None:
    await rig.provide(clusters=("c1", "c2"))
    await rig.list_model("m1", cluster="c1")
    await rig.list_model("m1", cluster="c2")

    assert await judge(rig, "c1", "c2") == Verdict(answer=Answer.PASSED)


async def test_nothing_served_yet_passes(rig: ControlRig) -> None:
    await rig.provide()

    assert (await judge(rig, "c1")).answer is Answer.PASSED


async def test_no_cluster_passes(rig: ControlRig) -> None:
    assert (await judge(rig)).answer is Answer.PASSED


async def test_the_reason_names_model_and_cluster(rig: ControlRig) -> None:
    await rig.provide(clusters=("c1", "c2"))
    rig.world.broken["m2"] = "bad weights"
    await rig.list_model("m1", cluster="c1")
    await rig.list_model("m2", cluster="c2")

    verdict = await judge(rig, "c1", "c2")

    assert verdict.answer is Answer.FAILED
    assert verdict.reason == (
        "model m2 is not ready in cluster c2: 0/2 replicas ready, 2 running "
        "(triton-is-c2-0: FAILED bad weights, triton-is-c2-1: FAILED bad weights)"
    )


@pytest.mark.parametrize("phase", [Phase.CANARY, Phase.STAGED, "later"])
async def test_what_does_not_serve_yet_is_not_judged(rig: ControlRig, phase: str) -> None:
    await rig.provide()
    rig.world.broken["m2"] = "bad weights"
    await rig.list_model("m2", phase)

    assert (await judge(rig, "c1")).answer is Answer.PASSED


async def test_another_deployments_model_is_not_judged(rig: ControlRig) -> None:
    await rig.provide()
    rig.world.broken["m2"] = "bad weights"
    await rig.list_model("m2", deployment="other")

    assert (await judge(rig, "c1")).answer is Answer.PASSED
    assert (await judge(rig, "c1", deployment="other")).answer is Answer.FAILED


@pytest.mark.parametrize("port", ["model_config", "backend"])
async def test_trouble_in_asking_is_unknown(rig: ControlRig, port: str) -> None:
    await rig.provide()
    await rig.list_model("m1")
    getattr(rig, port).fail_reads = Unavailable("cluster unreachable")

    verdict = await judge(rig, "c1")

    assert verdict == Verdict(answer=Answer.UNKNOWN, reason="cluster c1: cluster unreachable")


async def test_a_failure_in_one_cluster_outweighs_trouble_in_another(rig: ControlRig) -> None:
    await rig.provide(clusters=("c1", "c2"))
    rig.world.broken["m1"] = "bad weights"
    await rig.list_model("m1", cluster="c2")
    rig.model_config.broken[SERVER, ClusterId("c1")] = Unavailable("away")

    assert (await judge(rig, "c1", "c2")).answer is Answer.FAILED


async def test_every_cluster_that_does_not_answer_is_named(rig: ControlRig) -> None:
    rig.model_config.fail_reads = Unavailable("away")

    verdict = await judge(rig, "c1", "c2")

    assert verdict.reason == "cluster c1: away; cluster c2: away"


@pytest.mark.parametrize(
    "report",
    [
        pytest.param(report_of((READY, 900), wanted=2), id="missing"),
        pytest.param(report_of((READY, 900), (LOADING, None)), id="start-unknown"),
    ],
)
@pytest.mark.parametrize(
    ("short_s", "answer"),
    [
        pytest.param(None, Answer.PASSED, id="seen-for-the-first-time"),
        pytest.param(GRACE_S - 1, Answer.PASSED, id="within-the-grace"),
        pytest.param(GRACE_S, Answer.FAILED, id="grace-over"),
    ],
)
async def test_a_replica_that_is_missing_passes_for_the_grace_only(
    rig: ControlRig, report: LoadReport, short_s: float | None, answer: Answer
) -> None:
    await rig.provide()
    await rig.list_model("m1")
    rig.backend.reports["m1"] = report

    verdict = await judge(rig, "c1", short_s=short_s)

    assert (verdict.answer, verdict.is_short) == (answer, True)


async def test_a_replica_of_known_age_needs_no_record(rig: ControlRig) -> None:
    await rig.provide()
    await rig.list_model("m1")
    rig.backend.reports["m1"] = report_of((READY, 900), (LOADING, 5))

    assert await judge(rig, "c1", short_s=10 * GRACE_S) == Verdict(answer=Answer.PASSED)


def test_a_failure_outweighs_what_nobody_could_tell_and_both_outweigh_a_pass() -> None:
    passed = Verdict(answer=Answer.PASSED, is_short=True)
    failed = Verdict(answer=Answer.FAILED, reason="ill")
    unknown = Verdict(answer=Answer.UNKNOWN, reason="away")

    assert combined([]) == Verdict(answer=Answer.PASSED)
    assert combined([passed, unknown, failed]) == Verdict(
        answer=Answer.FAILED, reason="ill", is_short=True
    )
    assert combined([unknown, passed]) == Verdict(
        answer=Answer.UNKNOWN, reason="away", is_short=True
    )


async def test_a_judgement_writes_nothing(rig: ControlRig) -> None:
    await rig.provide()
    await rig.list_model("m1")
    before = list(rig.writes)

    await judge(rig, "c1")

    assert rig.writes == before
