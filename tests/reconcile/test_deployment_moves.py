"""One pass at a time: a Deployment that is pointed at another server (ADR 0016)."""

import pytest

from maserve.base.errors import Unavailable
from maserve.base.keys import ClusterId, Key
from maserve.conditions import UNKNOWN, find_condition
from maserve.deployment.stock.discovery import discovery_of
from maserve.modelconfig import Phase
from maserve.resource.annotations import CANDIDATE_SERVER, KNOWN_SERVERS, PLACED_ON, ROLLBACK_REASON
from maserve.runtime import After
from maserve.testing.builders import a_deployment, a_model
from maserve.testing.control_rig import ControlRig
from maserve.testing.expect import expect_condition
from maserve.wire import v2

COMPLETE = v2.DEPLOYMENT_STAGE_ROLLOUT_COMPLETE
ROLLED_BACK = v2.DEPLOYMENT_STAGE_ROLLBACK_COMPLETE
OTHER = Key("ns", "other")
SERVING = {"m1": Phase.SERVING}


@pytest.fixture
async def live(rig: ControlRig) -> ControlRig:
    """A Deployment that serves m1 on `is`, and a second server."""
    for model in ("m1", "m2"):
        await rig.store.create(a_model(model))
    await rig.provide()
    await rig.store.create(a_deployment(desired="m1"))
    await rig.run_deployment()
    await rig.provide("other")
    return rig


async def point(rig: ControlRig, server: str, model: str = "m1") -> None:
    deployment = await rig.deployment()
    deployment.spec.inference_server.name = server
    deployment.spec.desired_revision.name = model
    await rig.store.update(deployment)


async def until_new_path(rig: ControlRig) -> None:
    """Make passes until the new path is there; the last one added it."""
    while not (await both_paths(rig))[1]:
        await rig.pass_deployment()
        rig.advance(1.0)


async def both_paths(rig: ControlRig) -> tuple[bool, bool]:
    deployment = await rig.deployment()
    old, new = (discovery_of(rig.ports, deployment, name) for name in ("is", "other"))
    return await old.is_live(), await new.is_live()


async def test_a_good_move_ends_on_the_new_server_alone(live: ControlRig) -> None:
    await point(live, "other")

    await live.run_deployment()

    moved = await live.deployment()
    assert (moved.status.stage, moved.metadata.annotations[PLACED_ON]) == (COMPLETE, "other")
    assert moved.metadata.annotations[KNOWN_SERVERS] == '["other"]'
    assert (live.entries(), live.entries(server=OTHER)) == ({}, SERVING)
    assert await both_paths(live) == (False, True)
    assert moved.metadata.annotations["deployment.rollout.count"] == "1"


async def test_a_move_with_another_model_is_one_rollout(live: ControlRig) -> None:
    await point(live, "other", "m2")

    await live.run_deployment()

    moved = await live.deployment()
    assert moved.status.current_revision.name == "m2"
    assert (live.entries(), live.entries(server=OTHER)) == ({}, {"m2": Phase.SERVING})


async def test_the_old_path_stays_until_the_new_one_answers(live: ControlRig) -> None:
    await point(live, "other")
    await until_new_path(live)
    live.probe.stuck_on = ""

    await live.run_deployment(rounds=5)

    waiting = find_condition(
        (await live.deployment()).status.conditions, "PreviousServerCleanupComplete"
    )
    assert waiting is not None
    expect_condition(waiting, UNKNOWN, "NewPathNotAnswering", "server other is answered by no")
    assert await both_paths(live) == (True, True)
    live.probe.stuck_on = None
    await live.run_deployment(rounds=5)
    assert await both_paths(live) == (False, True)


async def test_an_old_server_that_cannot_be_cleaned_never_undoes_a_move(live: ControlRig) -> None:
    await point(live, "other")
    await until_new_path(live)
    live.model_config.fail_writes = Unavailable("the disk is full")

    await live.run_deployment(rounds=5)
    live.advance(live.settings.model_load_timeout_s * 2)
    outcome = await live.settle_deployment()

    stuck = await live.deployment()
    assert isinstance(outcome, After)
    assert stuck.status.stage == v2.DEPLOYMENT_STAGE_PLACEMENT
    assert "the disk is full" in stuck.status.conditions[-2].message
    assert (await both_paths(live))[1]
    live.model_config.fail_writes = None
    await live.run_deployment(rounds=5)
    assert (await live.deployment()).status.stage == COMPLETE
    assert live.entries() == {}


async def test_a_mistyped_server_is_waited_for_and_then_given_up(live: ControlRig) -> None:
    await point(live, "otehr")
    await live.settle_deployment()

    waiting = await live.deployment()
    expect_condition(
        waiting.status.conditions[0], UNKNOWN, "InferenceServerNotFound", "ns/otehr not found"
    )
    live.advance(live.settings.model_load_timeout_s + 1)
    await live.settle_deployment()

    given_up = await live.deployment()
    assert given_up.status.stage == ROLLED_BACK
    assert given_up.status.state == v2.DEPLOYMENT_STATE_HEALTHY
    assert "m1 on server otehr" in given_up.status.message
    assert (live.entries(), (await both_paths(live))[0]) == (SERVING, True)


async def test_a_mended_name_goes_on_at_once(live: ControlRig) -> None:
    await point(live, "otehr")
    await live.settle_deployment()
    await point(live, "other")

    await live.run_deployment()

    moved = await live.deployment()
    assert moved.metadata.annotations[PLACED_ON] == "other"
    assert (live.entries(), live.entries(server=OTHER)) == ({}, SERVING)


async def test_a_move_that_fails_is_taken_off_the_new_server(live: ControlRig) -> None:
    live.world.broken["m2"] = "weights are missing"
    await point(live, "other", "m2")

    await live.run_deployment()

    failed = await live.deployment()
    assert failed.status.stage == ROLLED_BACK
    assert (live.entries(), live.entries(server=OTHER)) == (SERVING, {})
    assert failed.metadata.annotations[CANDIDATE_SERVER] == "other"
    assert failed.metadata.annotations[KNOWN_SERVERS] == '["is"]'
    assert failed.metadata.annotations[ROLLBACK_REASON] == "Rollout failed"
    await live.run_deployment()
    assert (await live.deployment()).status.stage == ROLLED_BACK


async def test_trouble_on_the_old_server_keeps_nobody_from_leaving(live: ControlRig) -> None:
    live.world.broken["m1"] = "gone bad"
    for replica in live.world.groups[Key("ns", "is"), ClusterId("c1")]:
        replica.models.clear()
    await point(live, "other", "m2")

    await live.run_deployment()

    moved = await live.deployment()
    assert (moved.status.stage, moved.status.current_revision.name) == (COMPLETE, "m2")
    assert (live.entries(), live.entries(server=OTHER)) == ({}, {"m2": Phase.SERVING})


async def test_a_deletion_in_the_middle_of_a_move_leaves_nothing_on_either(
    live: ControlRig,
) -> None:
    await point(live, "other")
    for _ in range(8):
        await live.pass_deployment()
        live.advance(1.0)
    assert live.entries(server=OTHER)
    await live.store.delete(v2.Deployment, Key("ns", "d"))

    await live.run_deployment(rounds=5)

    assert await live.store.find(v2.Deployment, Key("ns", "d")) is None
    assert (live.entries(), live.entries(server=OTHER)) == ({}, {})
