"""What a Deployment's state says of the requests it would get, pass by pass (ADR 0021)."""

import pytest

from maserve.base.errors import Unavailable
from maserve.base.keys import ClusterId, Key, ModelName
from maserve.conditions import TRUE, UNKNOWN, find_condition
from maserve.testing.builders import DEPLOYMENT, SERVER, a_deployment, a_model
from maserve.testing.control_rig import ControlRig
from maserve.wire import api, v2

C1 = ClusterId("c1")
BYSTANDER = Key("ns", "bystander")
HEALTHY, UNHEALTHY = v2.DEPLOYMENT_STATE_HEALTHY, v2.DEPLOYMENT_STATE_UNHEALTHY


@pytest.fixture
async def live(rig: ControlRig) -> ControlRig:
    """Have two Deployments live on one server with two replicas."""
    await rig.provide()
    for model in ("m1", "m2", "b1"):
        await rig.store.create(a_model(model))
    await rig.store.create(a_deployment(desired="m1"))
    await rig.store.create(a_deployment(BYSTANDER.name, desired="b1"))
    await rig.run_deployment()
    await rig.run_deployment(BYSTANDER)
    return rig


async def status_of(rig: ControlRig, key: Key = BYSTANDER) -> v2.DeploymentStatus:
    await rig.settle_deployment(key)
    return (await rig.deployment(key)).status


def steady(status: v2.DeploymentStatus) -> api.Condition:
    found = find_condition(status.conditions, "StateSteady")
    assert found is not None
    return found


def kill_all(rig: ControlRig) -> None:
    rig.world.kill(SERVER, C1, 0)
    rig.world.kill(SERVER, C1, 1)


def state_changes(rig: ControlRig) -> list[tuple[str, str]]:
    events = [one for one in rig.recorder.events if one.key == BYSTANDER]
    return [(one.type, one.message) for one in events if one.reason == "StateChange"]


async def test_a_bystander_of_a_model_that_no_replica_can_load_is_healthy(
    live: ControlRig,
) -> None:
    live.world.broken["m1"] = "bad weights"
    kill_all(live)
    live.advance(5)
    live.advance(5)

    assert (await status_of(live)).state == HEALTHY
    ill = await status_of(live, DEPLOYMENT)
    assert ill.state == UNHEALTHY
    assert "model m1 is missing on replicas that take requests" in ill.message
    assert "bad weights" in ill.message


async def test_a_bystander_that_nobody_can_reach_is_not_healthy(live: ControlRig) -> None:
    live.world.slow["m1"] = 60.0
    kill_all(live)
    live.advance(5)
    live.advance(5)

    status = await status_of(live)

    why = (
        "cluster c1: no replica takes requests (triton-is-c1-0: serving models not loaded: m1; "
        "triton-is-c1-1: serving models not loaded: m1)"
    )
    assert (status.state, status.message) == (UNHEALTHY, f"Unhealthy: {why}")
    condition = steady(status)
    assert (condition.status, condition.reason, condition.message) == (UNKNOWN, "NotServing", why)


async def test_an_outage_is_told_once_and_its_end_too(live: ControlRig) -> None:
    before = len(state_changes(live))
    kill_all(live)
    await live.settle_deployment(BYSTANDER)
    live.advance(live.world.start_s)
    await live.settle_deployment(BYSTANDER)
    live.advance(5)

    status = await status_of(live)

    assert (status.state, status.message, steady(status).status) == (HEALTHY, "", TRUE)
    began, ended = state_changes(live)[before:]
    assert began[0] == "Warning"
    assert "Unhealthy: cluster c1: no replica takes requests" in began[1]
    assert ended == ("Normal", "DEPLOYMENT_STATE_UNHEALTHY to DEPLOYMENT_STATE_HEALTHY")


async def test_a_replica_that_restarts_beside_one_that_serves_is_degraded(live: ControlRig) -> None:
    live.world.kill(SERVER, C1, 1)

    status = await status_of(live)

    assert (status.state, status.message) == (
        HEALTHY,
        "Degraded: cluster c1: 1 of 2 replicas serve b1 (triton-is-c1-1: replica is starting)",
    )
    assert steady(status).status == TRUE


async def test_a_replica_that_is_added_is_progress(live: ControlRig) -> None:
    server = await live.server()
    server.spec.init_spec.num_instances = 3
    await live.store.update(server)
    await live.settle_server()

    status = await status_of(live)

    assert (status.state, status.message) == (
        HEALTHY,
        "Progressing: cluster c1: 2 of 3 replicas serve b1 (triton-is-c1-2: replica is starting)",
    )
    live.advance(5)
    live.advance(5)
    assert (await status_of(live)).message == ""


async def test_a_lost_route_is_a_reason(live: ControlRig) -> None:
    await live.site(deployment=BYSTANDER.name).unroute("Seed")
    live.routes.fail_writes = Unavailable("no gateway")

    status = await status_of(live)

    assert (status.state, status.message) == (
        UNHEALTHY,
        "Unhealthy: cluster c1: no traffic goes to b1",
    )


async def test_a_state_that_cannot_be_told_stays_with_its_reason(live: ControlRig) -> None:
    kill_all(live)
    before = await status_of(live)
    live.backend.fail_reads = Unavailable("away")

    after = await status_of(live)

    assert before.state == UNHEALTHY
    assert (after.state, after.message) == (before.state, before.message)


async def test_a_change_of_routes_that_is_not_acknowledged_yet_is_no_outage(
    live: ControlRig,
) -> None:
    live.routes.hold()
    await live.site("c1", "another").route_to(ModelName("m1"), "Seed")

    status = await status_of(live)

    assert (status.state, status.message) == (HEALTHY, "")


async def test_the_cause_of_a_rollback_stays_before_and_after_an_outage(live: ControlRig) -> None:
    live.world.broken["m2"] = "bad weights"
    deployment = await live.deployment()
    deployment.spec.desired_revision.name = "m2"
    await live.store.update(deployment)
    await live.run_deployment()
    cause = (await live.deployment()).status.message
    kill_all(live)

    out = await status_of(live, Key("ns", "d"))
    live.advance(5)
    live.advance(5)
    back = await status_of(live, Key("ns", "d"))

    assert "bad weights" in cause
    assert out.message.startswith(f"{cause}; Unhealthy: cluster c1: no replica takes requests")
    assert (back.state, back.message) == (HEALTHY, cause)
