"""Deployments that are deleted, emptied, moved, made again, or lose what they remembered."""

from collections.abc import Awaitable, Callable

import pytest
from structlog.testing import capture_logs

from maserve.base.errors import Denied, Unavailable
from maserve.base.keys import ClusterId, Key, ModelName
from maserve.deployment.keys import current
from maserve.deployment.noop import register_noop_plugins
from maserve.deployment.stock.discovery import discovery_of
from maserve.modelconfig import Phase
from maserve.resource.annotations import (
    BACKEND_TYPE,
    PLACED_ON,
    TARGET_CLUSTERS,
)
from maserve.runtime import After, Done
from maserve.testing.builders import DEPLOYMENT, SERVER, a_deployment, a_model, a_target
from maserve.testing.control_rig import ControlRig
from maserve.wire import v2

COMPLETE = v2.DEPLOYMENT_STAGE_ROLLOUT_COMPLETE
CLEAN = v2.DEPLOYMENT_STAGE_CLEAN_UP_COMPLETE
M1 = ModelName("m1")
C1, C2 = ClusterId("c1"), ClusterId("c2")

Story = Callable[[ControlRig], Awaitable[None]]


@pytest.fixture
async def ready(rig: ControlRig) -> ControlRig:
    await rig.provide(clusters=("c1", "c2"))
    await rig.store.create(a_model("m1"))
    await rig.store.create(a_model("m2"))
    await rig.store.create(a_deployment(desired="m1"))
    return rig


@pytest.fixture
async def live(ready: ControlRig) -> ControlRig:
    await ready.run_deployment()
    return ready


async def wish(rig: ControlRig, model: str) -> None:
    deployment = await rig.deployment()
    deployment.spec.desired_revision.name = model
    deployment.spec.desired_revision.namespace = "ns"
    await rig.store.update(deployment)


async def delete(rig: ControlRig) -> None:
    await rig.store.delete(v2.Deployment, DEPLOYMENT)


async def expect_nothing_left(rig: ControlRig) -> None:
    assert rig.entries("c1") == rig.entries("c2") == {}
    assert not await rig.site("c1").has_rule()
    assert not await rig.site("c2").has_rule()
    assert not await discovery_of(rig.ports, a_deployment()).is_there()


async def expect_gone(rig: ControlRig) -> None:
    assert await rig.store.find(v2.Deployment, DEPLOYMENT) is None
    await expect_nothing_left(rig)


async def expect_live(rig: ControlRig, model: str = "m1") -> v2.Deployment:
    deployment = await rig.deployment()
    assert (deployment.status.stage, current(deployment)) == (COMPLETE, model)
    assert rig.entries("c1") == rig.entries("c2") == {model: Phase.SERVING}
    assert await rig.site("c1").is_routed(ModelName(model))
    assert await rig.site("c2").is_routed(ModelName(model))
    assert await discovery_of(rig.ports, deployment).is_live()
    return deployment


async def unseen(_rig: ControlRig) -> None:
    return


async def just_seen(rig: ControlRig) -> None:
    await rig.pass_deployment()


async def validated(rig: ControlRig) -> None:
    await just_seen(rig)
    await rig.pass_deployment()


async def in_the_canary(rig: ControlRig) -> None:
    await rig.settle_deployment()


async def in_the_second_cluster(rig: ControlRig) -> None:
    rig.world.slow["m1"] = 3.0
    await rig.run_deployment(rounds=7)


async def complete(rig: ControlRig) -> None:
    await rig.run_deployment()


async def in_a_second_rollout(rig: ControlRig) -> None:
    await complete(rig)
    rig.world.slow["m2"] = 3.0
    await wish(rig, "m2")
    await rig.run_deployment(rounds=7)


async def in_a_rollback(rig: ControlRig) -> None:
    await in_a_second_rollout(rig)
    await wish(rig, "m1")
    await rig.pass_deployment()


async def after_a_rollback(rig: ControlRig) -> None:
    await complete(rig)
    rig.world.broken["m2"] = "bad weights"
    await wish(rig, "m2")
    await rig.run_deployment()


async def after_a_failed_first_rollout(rig: ControlRig) -> None:
    rig.world.broken["m1"] = "bad weights"
    await rig.run_deployment()


@pytest.mark.parametrize(
    "story",
    [
        unseen,
        just_seen,
        validated,
        in_the_canary,
        in_the_second_cluster,
        complete,
        in_a_second_rollout,
        in_a_rollback,
        after_a_rollback,
        after_a_failed_first_rollout,
    ],
)
async def test_a_deletion_leaves_nothing_in_whatever_stage(ready: ControlRig, story: Story) -> None:
    await story(ready)
    await delete(ready)

    await ready.run_deployment()

    await expect_gone(ready)


async def test_a_deletion_waits_for_a_cluster_that_is_away(live: ControlRig) -> None:
    await delete(live)
    live.model_config.broken[SERVER, C2] = Unavailable("cluster away")
    await live.run_deployment(rounds=5)

    held = await live.deployment()
    assert held.status.stage == v2.DEPLOYMENT_STAGE_CLEAN_UP_IN_PROGRESS
    assert "cluster away" in held.status.conditions[0].message
    live.model_config.broken.clear()
    await live.run_deployment(rounds=5)
    await expect_gone(live)


async def test_a_deployment_held_by_somebody_elses_finalizer_is_left_alone(
    live: ControlRig,
) -> None:
    deployment = await live.deployment()
    deployment.metadata.finalizers.append("somebody/else")
    await live.store.update(deployment)
    await delete(live)
    await live.run_deployment(rounds=3)
    before = await live.deployment()

    assert list(before.metadata.finalizers) == ["somebody/else"]
    assert await live.pass_deployment() == Done()
    assert await live.deployment() == before
    await expect_nothing_left(live)


async def clear_desired(rig: ControlRig) -> None:
    deployment = await rig.deployment()
    deployment.spec.ClearField("desired_revision")
    await rig.store.update(deployment)


async def mark_deleted(rig: ControlRig) -> None:
    deployment = await rig.deployment()
    deployment.spec.deletion_spec.deleted = True
    await rig.store.update(deployment)


@pytest.mark.parametrize("change", [clear_desired, mark_deleted])
@pytest.mark.parametrize("story", [in_the_canary, complete, in_a_second_rollout])
async def test_emptying_a_deployment_keeps_the_object_and_nothing_else(
    ready: ControlRig, change: Story, story: Story
) -> None:
    await story(ready)
    await change(ready)

    await ready.run_deployment()

    deployment = await ready.deployment()
    assert (deployment.status.stage, deployment.status.state) == (
        CLEAN,
        v2.DEPLOYMENT_STATE_EMPTY,
    )
    assert not {PLACED_ON, TARGET_CLUSTERS} & set(deployment.metadata.annotations)
    await expect_nothing_left(ready)


async def test_an_empty_deployment_writes_nothing_more(live: ControlRig) -> None:
    await clear_desired(live)
    await live.run_deployment(rounds=3)
    before, writes = await live.deployment(), list(live.writes)

    await live.run_deployment(rounds=5)

    assert (await live.deployment(), live.writes) == (before, writes)


async def test_an_emptied_deployment_starts_again_from_validation(live: ControlRig) -> None:
    await clear_desired(live)
    await live.run_deployment(rounds=5)
    await wish(live, "m2")

    await live.run_deployment()

    await expect_live(live, "m2")


async def test_a_wish_during_the_cleanup_is_met_after_it(live: ControlRig) -> None:
    await clear_desired(live)
    await live.pass_deployment()
    await wish(live, "m2")

    await live.run_deployment()

    await expect_live(live, "m2")


async def test_a_deployment_made_again_at_once_is_a_new_one(live: ControlRig) -> None:
    first = await live.deployment()
    await delete(live)
    await live.settle_deployment()
    await live.store.create(a_deployment(desired="m2"))

    await live.run_deployment()

    second = await expect_live(live, "m2")
    assert second.metadata.uid != first.metadata.uid
    assert second.metadata.annotations["deployment.rollout.count"] == "0"


async def test_a_deployment_that_moves_leaves_the_old_server(live: ControlRig) -> None:
    await live.provide("other", clusters=("c1",))
    deployment = await live.deployment()
    deployment.spec.inference_server.name = "other"
    await live.store.update(deployment)

    await live.run_deployment()

    assert live.entries("c1") == live.entries("c2") == {}
    assert live.entries("c1", server=Key("ns", "other")) == {"m1": Phase.SERVING}
    moved = await live.deployment()
    assert moved.metadata.annotations[PLACED_ON] == "other"
    assert moved.status.stage == COMPLETE


async def wipe_status(rig: ControlRig) -> None:
    deployment = await rig.deployment()
    deployment.status.Clear()
    await rig.store.update_status(deployment)


async def wipe_annotations(rig: ControlRig) -> None:
    deployment = await rig.deployment()
    deployment.metadata.annotations.clear()
    await rig.store.update(deployment)


async def wipe_both(rig: ControlRig) -> None:
    await wipe_annotations(rig)
    await wipe_status(rig)


@pytest.mark.parametrize("loss", [wipe_status, wipe_annotations, wipe_both])
async def test_a_loss_at_rest_costs_no_write_to_the_live_model(
    live: ControlRig, loss: Story
) -> None:
    await loss(live)
    calls = list(live.model_config.calls)

    await live.run_deployment()

    await expect_live(live)
    assert live.model_config.calls == calls


@pytest.mark.parametrize("loss", [wipe_status, wipe_annotations, wipe_both])
async def test_a_loss_mid_rollout_delays_nothing_but_itself(ready: ControlRig, loss: Story) -> None:
    await in_a_second_rollout(ready)
    await loss(ready)

    await ready.run_deployment()

    await expect_live(ready, "m2")


@pytest.mark.parametrize("loss", [wipe_status, wipe_annotations, wipe_both])
async def test_a_loss_before_a_failure_never_takes_the_live_model_away(
    live: ControlRig, loss: Story
) -> None:
    live.world.broken["m2"] = "bad weights"
    await wish(live, "m2")
    await live.settle_deployment()
    await loss(live)

    await live.run_deployment()

    assert live.entries("c1") == live.entries("c2") == {"m1": Phase.SERVING}
    assert await live.site("c1").is_routed(M1)
    assert await live.site("c2").is_routed(M1)
    assert current(await live.deployment()) == "m1"


async def test_a_loss_and_a_missing_model_leave_the_live_one_reachable(live: ControlRig) -> None:
    await wish(live, "m9")
    await wipe_both(live)

    await live.run_deployment()

    assert live.entries("c1") == live.entries("c2") == {"m1": Phase.SERVING}
    assert await discovery_of(live.ports, a_deployment()).is_live()


async def test_a_deletion_after_a_loss_still_leaves_nothing(live: ControlRig) -> None:
    await wipe_both(live)
    await delete(live)

    await live.run_deployment()

    await expect_gone(live)


async def remove_server(rig: ControlRig) -> None:
    """Take a server away as its controller does."""
    await rig.store.delete(v2.InferenceServer, SERVER)
    await rig.model_config.delete_model_config(SERVER, a_target("c1"))
    await rig.model_config.delete_model_config(SERVER, a_target("c2"))


async def test_a_server_deleted_under_a_deployment_stops_no_deletion(live: ControlRig) -> None:
    await remove_server(live)
    await live.run_deployment(rounds=3)
    await delete(live)

    await live.run_deployment(rounds=3)

    await expect_gone(live)


async def test_a_server_deleted_under_a_first_rollout_leaves_nothing_to_undo(
    ready: ControlRig,
) -> None:
    await in_the_canary(ready)
    await remove_server(ready)

    await ready.run_deployment(rounds=70)

    deployment = await ready.deployment()
    assert deployment.status.stage == v2.DEPLOYMENT_STAGE_ROLLBACK_COMPLETE
    assert "InferenceServer ns/is not found; create it" in deployment.status.message


async def test_a_server_deleted_under_a_deployment_is_told_by_the_state(live: ControlRig) -> None:
    await remove_server(live)
    live.world.remove(SERVER, C1)
    live.world.remove(SERVER, C2)
    live.advance(10)

    await live.run_deployment(rounds=2)

    deployment = await live.deployment()
    assert deployment.status.state == v2.DEPLOYMENT_STATE_UNHEALTHY
    assert deployment.status.stage == COMPLETE


async def test_a_server_made_again_gets_the_model_again(live: ControlRig) -> None:
    await remove_server(live)
    await live.run_deployment(rounds=2)
    await live.provide(clusters=("c1", "c2"))

    await live.run_deployment()

    await expect_live(live)


async def retarget(rig: ControlRig) -> None:
    deployment = await rig.deployment()
    deployment.spec.definition.type = v2.TARGET_TYPE_OFFLINE
    await rig.store.update(deployment)


async def test_a_target_that_nobody_serves_takes_nothing_away(live: ControlRig) -> None:
    await retarget(live)

    await live.run_deployment(rounds=2)

    refused = await live.deployment()
    assert "TARGET_TYPE_OFFLINE" in refused.status.message
    await expect_live(live)
    refused.spec.ClearField("definition")
    await live.store.update(refused)
    await live.run_deployment(rounds=2)
    assert (await expect_live(live)).status.message == ""


async def test_a_deployment_of_a_target_that_nobody_serves_can_be_deleted(
    live: ControlRig,
) -> None:
    await retarget(live)
    await live.run_deployment(rounds=2)
    await delete(live)

    await live.run_deployment(rounds=3)

    await expect_gone(live)


async def test_a_deployment_that_gets_another_plugin_leaves_its_server(live: ControlRig) -> None:
    register_noop_plugins(live.registrar)
    await retarget(live)

    await live.run_deployment(rounds=3)

    assert (await live.deployment()).status.stage == COMPLETE
    await expect_nothing_left(live)


async def lose_the_backend(rig: ControlRig) -> None:
    server = await rig.server()
    server.spec.backend_type = v2.BACKEND_TYPE_DYNAMO
    await rig.store.update(server)
    deployment = await rig.deployment()
    deployment.metadata.annotations[BACKEND_TYPE] = "BACKEND_TYPE_DYNAMO"
    await rig.store.update(deployment)


async def test_a_deployment_whose_backend_is_gone_can_be_deleted(live: ControlRig) -> None:
    await lose_the_backend(live)
    await live.run_deployment(rounds=2)
    await delete(live)

    await live.run_deployment(rounds=3)

    await expect_gone(live)


async def test_a_deployment_whose_backend_is_gone_says_so(live: ControlRig) -> None:
    server = await live.server()
    server.spec.backend_type = v2.BACKEND_TYPE_DYNAMO
    await live.store.update(server)
    await wish(live, "m2")

    await live.run_deployment()

    deployment = await live.deployment()
    assert deployment.status.stage == v2.DEPLOYMENT_STAGE_ROLLBACK_COMPLETE
    assert "InferenceServer ns/is: backend not found for type: BACKEND_TYPE_DYNAMO" in (
        deployment.status.message
    )
    assert live.entries("c1") == live.entries("c2") == {"m1": Phase.SERVING}


async def test_a_cluster_added_later_gets_the_model(live: ControlRig) -> None:
    server = await live.server()
    server.spec.cluster_targets.append(a_target("c3"))
    server = await live.store.update(server)
    server.status.cluster_statuses.add(cluster_id="c3", state=v2.INFERENCE_SERVER_STATE_SERVING)
    await live.store.update_status(server)
    await live.provide_in(server, a_target("c3"))
    live.advance(1)

    await live.run_deployment()

    assert live.entries("c3") == {"m1": Phase.SERVING}
    assert await live.site("c3").is_routed(M1)
    assert '"c3"' in (await live.deployment()).metadata.annotations[TARGET_CLUSTERS]


async def test_the_noop_plugin_goes_through_every_stage(rig: ControlRig) -> None:
    register_noop_plugins(rig.registrar)
    offline = a_deployment(desired="m1")
    offline.spec.definition.type = v2.TARGET_TYPE_OFFLINE
    await rig.store.create(offline)

    assert isinstance(await rig.settle_deployment(), After)
    first = await rig.deployment()
    assert (first.status.stage, first.status.state) == (COMPLETE, v2.DEPLOYMENT_STATE_HEALTHY)
    await clear_desired(rig)
    await rig.settle_deployment()
    emptied = await rig.deployment()
    assert (emptied.status.stage, emptied.status.state) == (CLEAN, v2.DEPLOYMENT_STATE_EMPTY)
    await delete(rig)
    await rig.settle_deployment()
    assert await rig.store.find(v2.Deployment, DEPLOYMENT) is None
    assert rig.writes == []


async def test_a_deletion_in_the_spec_with_nothing_placed_ends_clean_and_rests(
    rig: ControlRig,
) -> None:
    await rig.store.create(a_deployment(desired="m1"))
    await mark_deleted(rig)

    assert await rig.settle_deployment() == After(60.0)

    status = (await rig.deployment()).status
    assert (status.stage, status.state) == (CLEAN, v2.DEPLOYMENT_STATE_EMPTY)
    before = await rig.deployment()
    assert await rig.settle_deployment() == After(60.0)
    assert await rig.deployment() == before


async def test_a_deletion_in_the_spec_that_is_taken_back_rolls_out(ready: ControlRig) -> None:
    await mark_deleted(ready)
    await ready.settle_deployment()
    deployment = await ready.deployment()
    deployment.spec.deletion_spec.deleted = False
    await ready.store.update(deployment)

    await ready.run_deployment()

    await expect_live(ready)


async def test_a_deletion_without_its_plugin_is_held_and_says_so(rig: ControlRig) -> None:
    """Its control plane had a plugin for such a target, and the next one has not."""
    deployment = a_deployment(desired="m1")
    deployment.spec.definition.type = v2.TARGET_TYPE_OFFLINE
    register_noop_plugins(rig.registrar)
    await rig.store.create(deployment)
    await rig.settle_deployment()
    rig.registrar._plugins.pop("TARGET_TYPE_OFFLINE:")
    await rig.store.delete(v2.Deployment, DEPLOYMENT)

    await rig.settle_deployment()

    held = await rig.deployment()
    assert held.status.state == v2.DEPLOYMENT_STATE_INVALID
    assert "the finalizer holds until one is registered" in held.status.message
    assert rig.recorder.reasons[-1] == "ReconciliationError"
    register_noop_plugins(rig.registrar)
    await rig.settle_deployment()
    assert await rig.store.find(v2.Deployment, DEPLOYMENT) is None


async def test_a_failure_in_steady_state_is_logged_when_it_comes(live: ControlRig) -> None:
    await live.site("c1").remove_entry(M1, "Seed")
    live.model_config.fail_writes = Denied("model list is read-only")
    with capture_logs() as logs:
        await live.run_deployment(rounds=3)

    told = [each for each in logs if each["event"] == "deployment terminal stage"]
    assert [(each["condition"], each["reason"]) for each in told] == [
        ("StateSteady", "ProxyDenied")
    ]
    assert (await live.deployment()).status.stage == COMPLETE
