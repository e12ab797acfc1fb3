"""The soak of one cluster: what counts, what does not, and when it fails."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maserve.base.errors import Unavailable
from maserve.base.keys import ClusterId
from maserve.conditions import FALSE, REQUEUE_S, TRUE, UNKNOWN, Progress, Timed, put_condition
from maserve.deployment.stock.rollout.seen import UNSEEN_S, missed_s, passed_s, seen
from maserve.deployment.stock.rollout.soak import Soak
from maserve.resource.annotations import BACKEND_TYPE
from maserve.testing.builders import SERVER, a_deployment
from maserve.testing.control_rig import ControlRig
from maserve.testing.expect import act, expect_condition, look
from maserve.wire import api, v2

PERIOD_S = 90.0
BUDGET_S = 900.0
C1 = ClusterId("c1")
T0 = 1_000_000.0


@pytest.fixture
async def served(rig: ControlRig) -> ControlRig:
    await rig.provide(clusters=("c1", "c2"))
    await rig.serve("m1")
    return rig


@pytest.fixture
def deployment() -> v2.Deployment:
    return a_deployment(desired="m1", candidate="m1", placed=["c1", "c2"])


async def live_on(
    rig: ControlRig, actor: Soak, deployment: v2.Deployment, seconds: float
) -> api.Condition:
    """Let time pass with a look every ten seconds, as the engine has it; return the last one."""
    condition = await act(actor, deployment)
    for _ in range(int(seconds // 10)):
        rig.advance(10.0)
        condition = await act(actor, deployment)
    rig.advance(seconds % 10)
    return await act(actor, deployment) if seconds % 10 else condition


def kill_all(rig: ControlRig) -> None:
    """Kill every replica of c1 for longer than any budget."""
    rig.world.start_s = 1e9
    rig.world.kill(SERVER, C1, 0)
    rig.world.kill(SERVER, C1, 1)


def revive(rig: ControlRig) -> None:
    """Have every replica of c1 back, with its models."""
    rig.world.start_s = 0.0
    rig.world.kill(SERVER, C1, 0)
    rig.world.kill(SERVER, C1, 1)
    rig.advance(rig.world.load_s)


async def test_a_soak_lasts_its_period_from_the_first_attempt(
    served: ControlRig, deployment: v2.Deployment
) -> None:
    actor = Soak(served.site(), PERIOD_S)

    expect_condition(await look(actor, deployment), UNKNOWN, "SoakNotStarted")
    expect_condition(await act(actor, deployment), UNKNOWN, "Soaking", says="0s of 1m30s")
    condition = await live_on(served, actor, deployment, 60)
    expect_condition(condition, UNKNOWN, "Soaking", says="cluster c1: 1m of 1m30s")
    assert actor.due_in_s(deployment, condition) == 30
    expect_condition(await live_on(served, actor, deployment, 29), UNKNOWN, "Soaking")
    served.advance(1)
    expect_condition(await act(actor, deployment), TRUE)


async def test_a_soak_that_is_over_is_not_asked_again(
    served: ControlRig, deployment: v2.Deployment
) -> None:
    actor = Soak(served.site(), 10.0)
    await live_on(served, actor, deployment, 10)
    kill_all(served)

    expect_condition(await look(actor, deployment), TRUE)


async def test_a_soak_says_when_it_is_due(served: ControlRig) -> None:
    assert isinstance(Soak(served.site(), PERIOD_S), Timed)


async def test_looks_within_ten_seconds_write_no_new_record(
    served: ControlRig, deployment: v2.Deployment
) -> None:
    actor = Soak(served.site(), PERIOD_S)
    before = (await act(actor, deployment)).metadata.value
    served.advance(9)
    assert (await act(actor, deployment)).metadata.value == before
    served.advance(1)

    assert (await act(actor, deployment)).metadata.value != before


async def test_a_soak_starts_over_after_the_gate_did_not_pass(
    served: ControlRig, deployment: v2.Deployment
) -> None:
    actor = Soak(served.site(), PERIOD_S)
    await live_on(served, actor, deployment, 80)
    kill_all(served)
    condition = await act(actor, deployment)
    expect_condition(
        condition, UNKNOWN, "HealthGateNotPassing", says="model m1 is not ready in cluster c1: 0/2"
    )
    assert actor.due_in_s(deployment, condition) == BUDGET_S
    revive(served)

    expect_condition(await live_on(served, actor, deployment, 80), UNKNOWN, "Soaking", "1m20s of")
    expect_condition(await live_on(served, actor, deployment, 10), TRUE)


async def test_a_soak_starts_over_when_its_cluster_has_lost_the_traffic(
    served: ControlRig, deployment: v2.Deployment
) -> None:
    actor = Soak(served.site(), PERIOD_S)
    switch = deployment.status.conditions.add(type="TrafficRoutingConfigured-c1", status=TRUE)
    await live_on(served, actor, deployment, 80)
    switch.status = UNKNOWN
    seen = await look(actor, deployment)
    expect_condition(seen, UNKNOWN, "SoakNotStarted")
    put_condition(deployment.status.conditions, seen)
    switch.status = TRUE

    expect_condition(await live_on(served, actor, deployment, 80), UNKNOWN, "Soaking", "1m20s of")


async def test_a_gate_that_cannot_be_asked_holds_the_soak(
    served: ControlRig, deployment: v2.Deployment
) -> None:
    actor = Soak(served.site(), PERIOD_S)
    await act(actor, deployment)
    served.backend.fail_reads = Unavailable("cluster away")

    condition = await live_on(served, actor, deployment, 600)

    expect_condition(condition, UNKNOWN, "HealthGateNotPassing", says="cluster c1: cluster away")


async def test_a_gate_whose_backend_is_gone_holds_the_soak(
    served: ControlRig, deployment: v2.Deployment
) -> None:
    deployment.metadata.annotations[BACKEND_TYPE] = "BACKEND_TYPE_DYNAMO"

    expect_condition(
        await act(Soak(served.site(), PERIOD_S), deployment),
        UNKNOWN,
        "HealthGateNotPassing",
        says="BACKEND_TYPE_DYNAMO",
    )


async def test_a_gate_that_does_not_pass_for_the_budget_fails_the_soak(
    served: ControlRig, deployment: v2.Deployment
) -> None:
    actor = Soak(served.site(), PERIOD_S)
    await act(actor, deployment)
    kill_all(served)
    expect_condition(
        await live_on(served, actor, deployment, BUDGET_S - 10), UNKNOWN, "HealthGateNotPassing"
    )

    expect_condition(
        await live_on(served, actor, deployment, 10),
        FALSE,
        "HealthGateTimeout",
        says="HealthGateNotPassing: model m1 is not ready in cluster c1: 0/2 replicas ready",
    )


async def test_a_soak_longer_than_the_budget_is_none_of_its_business(
    served: ControlRig, deployment: v2.Deployment
) -> None:
    actor = Soak(served.site(), 2 * BUDGET_S)

    condition = await live_on(served, actor, deployment, 2 * BUDGET_S - 10)

    expect_condition(condition, UNKNOWN, "Soaking")
    assert actor.due_in_s(deployment, condition) == 10


async def test_a_gate_that_comes_and_goes_spends_the_budget_too(
    served: ControlRig, deployment: v2.Deployment
) -> None:
    actor = Soak(served.site(), PERIOD_S)
    await act(actor, deployment)
    reasons: list[str] = []
    for _ in range(10):
        kill_all(served)
        reasons.append((await live_on(served, actor, deployment, 100)).reason)
        revive(served)
        await act(actor, deployment)

    assert reasons[:8] == ["HealthGateNotPassing"] * 8
    assert reasons[-1] == "HealthGateTimeout"


async def test_time_in_which_nobody_looked_counts_neither_for_nor_against(
    served: ControlRig, deployment: v2.Deployment
) -> None:
    actor = Soak(served.site(), PERIOD_S)
    await live_on(served, actor, deployment, 50)
    served.advance(3600)
    expect_condition(await act(actor, deployment), UNKNOWN, "Soaking", says="50s of 1m30s")
    kill_all(served)
    await act(actor, deployment)
    served.advance(3600)

    expect_condition(await act(actor, deployment), UNKNOWN, "HealthGateNotPassing")


PAUSES = st.one_of(st.floats(0.0, UNSEEN_S - REQUEUE_S), st.floats(UNSEEN_S + REQUEUE_S, 1e4))
"""Between the two it depends on when time was written down last."""


@given(looks=st.lists(st.tuples(PAUSES, st.booleans()), min_size=1, max_size=30))
def test_what_was_seen_counts_once_and_what_was_not_seen_counts_never(
    looks: list[tuple[float, bool]],
) -> None:
    progress, now_s, well_s, ill_s, unseen, changes = Progress(), T0, 0.0, 0.0, 0, 0
    before: bool | None = None
    for pause_s, well in looks:
        now_s += pause_s
        was_seen = before is not None and pause_s < UNSEEN_S
        unseen += not was_seen
        seen_s = pause_s if was_seen else 0.0
        well_s = well_s + seen_s if well and before is True else 0.0
        ill_s += 0.0 if well and before is True else seen_s
        progress = seen(progress, now_s, well=well)
        changes += before is not well
        before = well

    lost_s = unseen * REQUEUE_S  # what was not written down yet when nobody looked any more
    well_s = well_s if before else 0.0
    assert well_s - lost_s - 1e-3 <= passed_s(progress, now_s) <= well_s + 1e-3
    assert ill_s - lost_s - 1e-3 <= missed_s(progress, now_s)
    assert missed_s(progress, now_s) <= ill_s + changes * REQUEUE_S + 1e-3
