"""Rollouts of a Deployment, pass by pass: first, second, failed, undone, repeated."""

import pytest

from maserve.base.errors import Conflict, Unavailable
from maserve.base.keys import ClusterId, Key, ModelName
from maserve.cli.goals import parse_goal
from maserve.cli.reach import dead_end, is_met
from maserve.deployment import FINALIZER
from maserve.deployment.keys import (
    candidate,
    current,
)
from maserve.modelconfig import Phase
from maserve.resource import get_kind
from maserve.resource.annotations import (
    HEALTH_GATE_REASON,
    RETRY,
    ROLLBACK_REASON,
    ROLLOUT_COUNT,
)
from maserve.runtime import After, Again, Done, Stop
from maserve.testing.builders import DEPLOYMENT, SERVER, a_deployment, a_model
from maserve.testing.control_rig import ControlRig
from maserve.wire import v2

COMPLETE = v2.DEPLOYMENT_STAGE_ROLLOUT_COMPLETE
ROLLED_BACK = v2.DEPLOYMENT_STAGE_ROLLBACK_COMPLETE
M1, M2 = ModelName("m1"), ModelName("m2")


@pytest.fixture
async def ready(rig: ControlRig) -> ControlRig:
    """Have a server in two clusters, three models and a Deployment that wants m1."""
    await rig.provide(clusters=("c1", "c2"))
    await rig.store.create(a_model("m1"))
    await rig.store.create(a_model("m2"))
    await rig.store.create(a_model("m3"))
    await rig.store.create(a_deployment(desired="m1"))
    return rig


@pytest.fixture
async def live(ready: ControlRig) -> ControlRig:
    """Have m1 rolled out."""
    await ready.run_deployment()
    return ready


async def wish(rig: ControlRig, model: str, **annotations: str) -> None:
    deployment = await rig.deployment()
    deployment.spec.desired_revision.name = model
    deployment.spec.desired_revision.namespace = "ns"
    deployment.metadata.annotations.update(annotations)
    await rig.store.update(deployment)


async def expect_live(rig: ControlRig, model: str, stage: "v2.DeploymentStage") -> v2.Deployment:
    """Fail unless exactly `model` is served everywhere and the status says so."""
    deployment = await rig.deployment()
    assert (deployment.status.stage, current(deployment)) == (stage, model)
    assert deployment.status.state == v2.DEPLOYMENT_STATE_HEALTHY
    assert rig.entries("c1") == rig.entries("c2") == {model: Phase.SERVING}
    assert await rig.site("c1").is_routed(ModelName(model))
    assert await rig.site("c2").is_routed(ModelName(model))
    return deployment


async def test_the_finalizer_comes_before_anything_is_made(ready: ControlRig) -> None:
    before = list(ready.writes)

    assert await ready.pass_deployment() == Again()

    assert list((await ready.deployment()).metadata.finalizers) == [FINALIZER]
    assert ready.writes == before


async def test_a_first_rollout_ends_with_the_model_live_everywhere(live: ControlRig) -> None:
    deployment = await expect_live(live, "m1", COMPLETE)

    assert candidate(deployment) == "m1"
    assert deployment.metadata.annotations[ROLLOUT_COUNT] == "0"
    assert [c.type for c in deployment.status.conditions] == ["StateSteady"]
    assert [e.message for e in live.recorder.events if e.reason == "StageChange"] == [
        "state transition from DEPLOYMENT_STAGE_INVALID to DEPLOYMENT_STAGE_PLACEMENT",
        "state transition from DEPLOYMENT_STAGE_PLACEMENT to DEPLOYMENT_STAGE_ROLLOUT_COMPLETE",
    ]


async def test_a_second_rollout_replaces_the_model_cluster_by_cluster(live: ControlRig) -> None:
    await wish(live, "m2")
    await live.settle_deployment()
    assert live.entries("c1") == {"m1": Phase.SERVING, "m2": Phase.CANARY}
    assert live.entries("c2") == {"m1": Phase.SERVING}

    await live.run_deployment()

    deployment = await expect_live(live, "m2", COMPLETE)
    assert deployment.metadata.annotations[ROLLOUT_COUNT] == "1"


async def test_the_old_model_serves_until_every_cluster_has_switched(live: ControlRig) -> None:
    live.world.slow["m2"] = 3.0
    await wish(live, "m2")
    await live.run_deployment(rounds=7)

    assert await live.site("c1").is_routed(M2)
    assert await live.site("c2").is_routed(M1)
    assert live.entries("c1") == {"m1": Phase.SERVING, "m2": Phase.SERVING}


async def test_a_failed_canary_rolls_back_and_says_why(live: ControlRig) -> None:
    live.world.broken["m2"] = "bad weights"
    await wish(live, "m2")

    await live.run_deployment()

    deployment = await expect_live(live, "m1", ROLLED_BACK)
    assert candidate(deployment) == "m2"
    assert deployment.metadata.annotations[ROLLBACK_REASON] == "Rollout failed"
    assert "bad weights" in deployment.status.message
    assert "CanaryRolloutComplete-c1" in [c.type for c in deployment.status.conditions_snapshot]
    assert "EarlyTermination" in live.recorder.reasons


async def test_a_failed_first_rollout_leaves_nothing(ready: ControlRig) -> None:
    ready.world.broken["m1"] = "bad weights"

    await ready.run_deployment()

    deployment = await ready.deployment()
    assert (deployment.status.stage, current(deployment)) == (ROLLED_BACK, "")
    assert deployment.status.state == v2.DEPLOYMENT_STATE_UNHEALTHY
    assert deployment.status.message.endswith("; Unhealthy: no model is live")
    assert ready.entries("c1") == ready.entries("c2") == {}
    assert not await ready.site("c1").has_rule()


async def test_a_failure_in_the_second_cluster_restores_the_first(live: ControlRig) -> None:
    live.world.slow["m2"] = 3.0
    await wish(live, "m2")
    await live.run_deployment(rounds=7)
    live.world.broken["m2"] = "bad weights"

    await live.run_deployment(rounds=20)

    await expect_live(live, "m1", ROLLED_BACK)


async def test_a_failed_gate_rolls_back_and_keeps_its_reason(live: ControlRig) -> None:
    live.world.slow["m2"] = 30.0
    await wish(live, "m2")
    await live.settle_deployment()
    live.world.kill(SERVER, ClusterId("c2"), 0)
    live.world.kill(SERVER, ClusterId("c2"), 1)

    await live.settle_deployment()

    deployment = await live.deployment()
    assert deployment.status.stage == v2.DEPLOYMENT_STAGE_ROLLBACK_IN_PROGRESS
    assert deployment.metadata.annotations[ROLLBACK_REASON] == "Alert fired"
    assert "cluster c2" in deployment.metadata.annotations[HEALTH_GATE_REASON]
    await live.run_deployment()
    undone = await expect_live(live, "m1", ROLLED_BACK)
    assert "cluster c2" in undone.metadata.annotations[HEALTH_GATE_REASON]
    assert "cluster c2" in undone.status.message


async def test_a_repeated_rollout_of_the_live_model_is_guarded_and_takes_nothing_away(
    live: ControlRig,
) -> None:
    deployment = await live.deployment()
    deployment.status.stage = v2.DEPLOYMENT_STAGE_INVALID
    await live.store.update_status(deployment)
    live.world.kill(SERVER, ClusterId("c2"), 0)
    live.world.kill(SERVER, ClusterId("c2"), 1)
    before = list(live.model_config.calls)

    await live.settle_deployment()

    guarded = await live.deployment()
    assert guarded.status.stage == v2.DEPLOYMENT_STAGE_ROLLBACK_IN_PROGRESS
    assert guarded.metadata.annotations[ROLLBACK_REASON] == "Alert fired"
    await live.run_deployment()
    await expect_live(live, "m1", ROLLED_BACK)
    assert live.model_config.calls == before


async def test_a_gate_nobody_can_answer_rolls_nothing_back(live: ControlRig) -> None:
    live.world.slow["m2"] = 10.0
    await wish(live, "m2")
    await live.settle_deployment()
    live.backend.fail_reads = Unavailable("cluster away")
    await live.settle_deployment()
    live.backend.fail_reads = None

    await live.run_deployment(rounds=80)

    await expect_live(live, "m2", COMPLETE)


async def test_a_rollback_goes_on_although_the_gate_recovers(live: ControlRig) -> None:
    live.world.slow["m2"] = 30.0
    await wish(live, "m2")
    await live.settle_deployment()
    live.world.kill(SERVER, ClusterId("c2"), 0)
    live.world.kill(SERVER, ClusterId("c2"), 1)
    await live.pass_deployment()
    live.advance(5)
    live.advance(5)

    await live.run_deployment()

    await expect_live(live, "m1", ROLLED_BACK)


async def test_another_wish_mid_rollout_undoes_the_first_one(live: ControlRig) -> None:
    live.world.slow["m2"] = 30.0
    await wish(live, "m2")
    await live.settle_deployment()
    await wish(live, "m3")

    await live.run_deployment(rounds=30)

    deployment = await expect_live(live, "m3", COMPLETE)
    assert deployment.metadata.annotations[ROLLOUT_COUNT] == "2"


async def test_a_wish_taken_back_and_made_again_is_met(live: ControlRig) -> None:
    live.world.slow["m2"] = 5.0
    await wish(live, "m2")
    await live.settle_deployment()
    await wish(live, "m3")
    await live.pass_deployment()
    await wish(live, "m2")

    await live.run_deployment(rounds=30)

    await expect_live(live, "m2", COMPLETE)


async def test_going_back_mid_rollout_never_touches_the_live_model(live: ControlRig) -> None:
    live.world.slow["m2"] = 30.0
    await wish(live, "m2")
    await live.settle_deployment()
    await wish(live, "m1")
    before = [call for call in live.model_config.calls if "m1" in call]

    await live.run_deployment()

    deployment = await expect_live(live, "m1", ROLLED_BACK)
    assert candidate(deployment) == "m1"
    assert [call for call in live.model_config.calls if "m1" in call] == before


async def test_applying_the_old_manifest_ends_as_a_wait_for_the_rollout_wants_it(
    live: ControlRig,
) -> None:
    live.world.slow["m2"] = 30.0
    goal = parse_goal("stage=ROLLOUT_COMPLETE", get_kind("deployment"))
    await wish(live, "m2")
    await live.settle_deployment()
    await wish(live, "m1")
    told = []
    for _ in range(20):
        await live.pass_deployment()
        told.append(dead_end(goal, await live.deployment()))

    reverted = await live.deployment()
    assert reverted.status.stage == ROLLED_BACK
    assert is_met(goal, reverted)
    assert set(told) == {""}


async def test_a_retry_tries_the_same_model_again(live: ControlRig) -> None:
    live.world.broken["m2"] = "bad weights"
    await wish(live, "m2")
    await live.run_deployment()
    live.world.broken.clear()
    live.advance(10)
    await wish(live, "m2", **{RETRY: "fixed the disk"})

    await live.run_deployment()

    await expect_live(live, "m2", COMPLETE)


async def test_going_back_after_a_failed_rollback_repairs_everything(live: ControlRig) -> None:
    live.world.broken["m2"] = "bad weights"
    await wish(live, "m2")
    await live.settle_deployment()
    live.model_config.fail_writes = Unavailable("config away")
    await live.run_deployment(rounds=70)
    failed = await live.deployment()
    assert failed.status.stage == v2.DEPLOYMENT_STAGE_ROLLBACK_FAILED
    live.model_config.fail_writes = None
    await wish(live, "m1")

    await live.run_deployment()

    await expect_live(live, "m1", COMPLETE)


async def failed_rollback(rig: ControlRig) -> v2.Deployment:
    """Have m2 fail, and its rollback too, since no model config can be written."""
    rig.world.broken["m2"] = "bad weights"
    await wish(rig, "m2")
    await rig.settle_deployment()
    rig.model_config.fail_writes = Unavailable("config away")
    await rig.run_deployment(rounds=70)
    failed = await rig.deployment()
    assert failed.status.stage == v2.DEPLOYMENT_STAGE_ROLLBACK_FAILED
    return failed


async def test_a_failed_rollback_says_where_and_rests(live: ControlRig) -> None:
    failed = await failed_rollback(live)
    assert failed.status.message == (
        "RollbackComplete-c1: RemoveCandidateModelFailed: config away (still failing after 1m); "
        "it is tried again"
    )

    await live.run_deployment(rounds=30)

    assert isinstance(await live.pass_deployment(), After)
    assert await live.deployment() == failed


async def test_a_failed_rollback_is_finished_once_it_can_be(live: ControlRig) -> None:
    await failed_rollback(live)
    live.model_config.fail_writes = None

    await live.run_deployment(rounds=3)

    deployment = await expect_live(live, "m1", ROLLED_BACK)
    assert "bad weights" in deployment.status.message
    assert "config away" not in deployment.status.message
    assert RETRY in deployment.status.message


async def test_a_failed_rollback_of_a_first_rollout_leaves_nothing_in_the_end(
    ready: ControlRig,
) -> None:
    ready.world.broken["m1"] = "bad weights"
    await ready.settle_deployment()
    ready.model_config.fail_writes = Unavailable("config away")
    await ready.run_deployment(rounds=70)
    assert (await ready.deployment()).status.stage == v2.DEPLOYMENT_STAGE_ROLLBACK_FAILED
    ready.model_config.fail_writes = None

    await ready.run_deployment(rounds=3)

    assert (await ready.deployment()).status.stage == ROLLED_BACK
    assert ready.entries("c1") == ready.entries("c2") == {}


async def test_a_cluster_that_cannot_be_restored_keeps_no_other_from_it(live: ControlRig) -> None:
    live.world.slow["m2"] = 3.0
    await wish(live, "m2")
    await live.run_deployment(rounds=7)
    assert await live.site("c1").is_routed(M2)
    assert set(live.entries("c2")) == {"m1", "m2"}
    live.world.broken["m1"] = "bad disk"
    live.world.kill(SERVER, ClusterId("c1"), 0)
    await wish(live, "m1")

    await live.run_deployment(rounds=5)

    assert (await live.deployment()).status.stage == v2.DEPLOYMENT_STAGE_ROLLBACK_FAILED
    assert live.entries("c2") == {"m1": Phase.SERVING}
    assert set(live.entries("c1")) == {"m1", "m2"}


async def test_a_blast_leads_out_of_a_current_model_that_cannot_be_loaded(
    live: ControlRig,
) -> None:
    live.world.broken["m1"] = "bad disk"
    live.world.kill(SERVER, ClusterId("c1"), 0)
    live.advance(5)
    live.advance(5)
    await wish(live, "m2")
    await live.run_deployment()
    held = await live.deployment()
    assert held.status.stage == v2.DEPLOYMENT_STAGE_ROLLBACK_FAILED
    assert "bad disk" in held.metadata.annotations[HEALTH_GATE_REASON]
    held.spec.strategy.blast.SetInParent()
    held.spec.desired_revision.name = "m3"
    await live.store.update(held)

    await live.run_deployment()

    await expect_live(live, "m3", COMPLETE)


async def test_a_missing_model_fails_and_says_so(ready: ControlRig) -> None:
    await wish(ready, "m9")

    await ready.run_deployment()

    deployment = await ready.deployment()
    assert deployment.status.stage == ROLLED_BACK
    assert "Model ns/m9 not found" in deployment.status.message


async def test_a_missing_server_is_waited_for(rig: ControlRig) -> None:
    await rig.store.create(a_model("m1"))
    await rig.store.create(a_deployment(desired="m1"))
    outcome = await rig.settle_deployment()
    assert isinstance(outcome, After)
    assert 0 < outcome.seconds <= 10
    await rig.provide(clusters=("c1", "c2"))

    await rig.run_deployment()

    await expect_live(rig, "m1", COMPLETE)


async def test_a_server_that_never_comes_fails_the_rollout(rig: ControlRig) -> None:
    await rig.store.create(a_model("m1"))
    await rig.store.create(a_deployment(desired="m1"))

    await rig.run_deployment(rounds=70)

    deployment = await rig.deployment()
    assert deployment.status.stage == ROLLED_BACK
    assert "InferenceServer ns/is not found" in deployment.status.message


async def test_every_cluster_soaks_before_the_next_begins(ready: ControlRig) -> None:
    deployment = await ready.deployment()
    deployment.spec.strategy.zonal.rollout_period_in_seconds = 10
    await ready.store.update(deployment)
    await ready.run_deployment(rounds=6)
    assert ready.entries("c2") == {}

    await ready.run_deployment(rounds=30)

    await expect_live(ready, "m1", COMPLETE)


async def test_a_deployment_of_a_type_nobody_serves_says_so_once(rig: ControlRig) -> None:
    deployment = a_deployment()
    deployment.spec.definition.type = v2.TARGET_TYPE_OFFLINE
    await rig.store.create(deployment)
    text = "no plugin found for targetType=TARGET_TYPE_OFFLINE, subType="

    assert await rig.pass_deployment() == Stop(text)
    first = await rig.deployment()
    assert await rig.pass_deployment() == Stop(text)

    assert (first.status.message, first.status.state) == (text, v2.DEPLOYMENT_STATE_INVALID)
    assert (await rig.deployment()) == first
    assert rig.recorder.reasons == ["ReconciliationError"]


async def test_a_deployment_that_is_not_there_is_done(rig: ControlRig) -> None:
    assert await rig.pass_deployment(Key("ns", "nobody")) == Done()


async def test_a_lost_race_starts_over(live: ControlRig) -> None:
    await wish(live, "m2")

    class Racing:
        """Lets somebody else write first, once."""

        def __init__(self, rig: ControlRig) -> None:
            self.rig = rig

        async def find(self, kind: type[v2.Deployment], key: Key) -> v2.Deployment | None:
            found = await self.rig.store.find(kind, key)
            await wish(self.rig, "m3")
            return found

        def __getattr__(self, name: str) -> object:
            return getattr(self.rig.store, name)

    racing = live.deployments.__class__(
        store=Racing(live),  # type: ignore[arg-type]  # the part of a Store that matters here
        registrar=live.registrar,
        recorder=live.recorder,
        clock=live.clock,
    )
    with pytest.raises(Conflict):
        await racing.reconcile(DEPLOYMENT)

    await live.run_deployment()
    await expect_live(live, "m3", COMPLETE)


async def test_two_deployments_may_list_the_same_model(live: ControlRig) -> None:
    other = Key("ns", "other")
    await live.store.create(a_deployment("other", desired="m1"))
    await live.run_deployment(other)
    await wish(live, "m2")
    await live.run_deployment()

    await expect_live(live, "m2", COMPLETE)
    assert live.entries("c1", deployment="other") == {"m1": Phase.SERVING}
    assert await live.site("c1", "other").is_routed(M1)
    await live.settle_deployment(other)
    assert (await live.deployment(other)).status.state == v2.DEPLOYMENT_STATE_HEALTHY


@pytest.mark.parametrize("broken", [pytest.param("", id="live"), pytest.param("m2", id="undone")])
async def test_at_rest_nothing_is_written(live: ControlRig, broken: str) -> None:
    live.world.broken.update({broken: "bad weights"})
    await wish(live, "m2")
    await live.run_deployment(rounds=25)
    before, writes = await live.deployment(), list(live.writes)

    await live.run_deployment(rounds=30)

    assert isinstance(await live.pass_deployment(), After)
    assert await live.deployment() == before
    assert live.writes == writes
