"""Cleanup leaves nothing (behaviour 5.12); steady state keeps what was rolled out."""

from collections.abc import Awaitable, Callable

import pytest

from maserve.base.errors import Denied, Unavailable
from maserve.base.keys import ClusterId, Key, ModelName
from maserve.conditions import FALSE, TRUE, UNKNOWN
from maserve.deployment.stock.cleanup.cleanup_complete import CleanupComplete
from maserve.deployment.stock.discovery import discovery_of
from maserve.deployment.stock.placement import snapshot_of
from maserve.deployment.stock.steadystate.state_steady import StateSteady
from maserve.modelconfig import Phase
from maserve.resource.annotations import (
    PLACEMENT,
    TARGET_CLUSTERS,
)
from maserve.testing.builders import SERVER, a_deployment, a_model
from maserve.testing.control_rig import ControlRig
from maserve.testing.expect import act, expect_condition, look
from maserve.testing.store_fake import FakeStore
from maserve.wire import v2

COMPLETE = v2.DEPLOYMENT_STAGE_ROLLOUT_COMPLETE
CLEANING = v2.DEPLOYMENT_STAGE_CLEAN_UP_IN_PROGRESS
C1 = ClusterId("c1")
M1 = ModelName("m1")

Seed = Callable[[ControlRig], Awaitable[None]]


@pytest.fixture
def deployment() -> v2.Deployment:
    return a_deployment(candidate="m1", current="m1", stage=COMPLETE, placed=["c1", "c2"])


@pytest.fixture
async def live(rig: ControlRig, deployment: v2.Deployment) -> ControlRig:
    """Have a Deployment served in two clusters and known to the gateway."""
    await rig.provide(clusters=("c1", "c2"))
    await rig.store.create(a_model("m1"))
    await rig.serve("m1", cluster="c1")
    await rig.serve("m1", cluster="c2")
    await discovery_of(rig.ports, deployment).add()
    return rig


async def acts(
    actor: CleanupComplete | StateSteady, deployment: v2.Deployment, rig: ControlRig
) -> None:
    for _ in range(8):
        await act(actor, deployment)
        rig.advance(rig.world.load_s)


async def test_cleanup_removes_rules_and_every_entry(
    live: ControlRig, deployment: v2.Deployment
) -> None:
    await live.list_model("m2", Phase.CANARY, replica="triton-is-c1-0")
    await live.list_model("m1", deployment="other")
    actor = CleanupComplete(live.ports)

    expect_condition(await look(actor, deployment), UNKNOWN, "DiscoveryRouteStillExists")
    expect_condition(await act(actor, deployment), UNKNOWN, "CleanupVerifying")
    expect_condition(await act(actor, deployment), TRUE)

    assert (live.entries("c1"), live.entries("c2")) == ({}, {})
    assert not await live.site("c1").has_rule()
    assert not await live.site("c2").has_rule()
    assert live.entries(deployment="other") == {"m1": Phase.SERVING}


async def test_cleanup_takes_the_rules_first(live: ControlRig, deployment: v2.Deployment) -> None:
    live.model_config.fail_writes = Unavailable("config away")

    await act(CleanupComplete(live.ports), deployment)

    assert not await discovery_of(live.ports, deployment).is_there()
    assert not await live.site("c1").has_rule()
    assert live.entries("c1") == {"m1": Phase.SERVING}


async def route_again(rig: ControlRig) -> None:
    await rig.site("c2").route_to(M1, "Seed")


async def list_again(rig: ControlRig) -> None:
    await rig.list_model("m1")


@pytest.mark.parametrize(
    ("seed", "reason"),
    [
        pytest.param(route_again, "TrafficRouteStillExists", id="traffic-rule"),
        pytest.param(list_again, "ModelStillExistsInInferenceServer", id="entry"),
    ],
)
async def test_cleanup_says_what_is_left(
    live: ControlRig, deployment: v2.Deployment, seed: Seed, reason: str
) -> None:
    await act(CleanupComplete(live.ports), deployment)
    await seed(live)

    expect_condition(await look(CleanupComplete(live.ports), deployment), UNKNOWN, reason)


async def test_cleanup_goes_on_where_it_can_and_retries_the_rest_without_end(
    live: ControlRig, deployment: v2.Deployment
) -> None:
    live.model_config.broken[SERVER, C1] = Unavailable("cluster away")
    actor = CleanupComplete(live.ports)

    expect_condition(
        await act(actor, deployment),
        UNKNOWN,
        "CleanupRetrying",
        says="cluster c1: ModelConfigReadFailed: cluster away",
    )
    assert live.entries("c2") == {}
    live.advance(1_000_000)
    expect_condition(await act(actor, deployment), UNKNOWN, "CleanupRetrying")
    live.model_config.broken.clear()
    await act(actor, deployment)
    expect_condition(await act(actor, deployment), TRUE)


@pytest.mark.parametrize(
    ("attribute", "reason"),
    [
        pytest.param("fail_reads", "DiscoveryRouteStatusCheckFailed", id="read"),
        pytest.param("fail_writes", "DiscoveryRouteRemovalFailed", id="write"),
    ],
)
async def test_cleanup_retries_a_gateway_that_does_not_answer(
    live: ControlRig, deployment: v2.Deployment, attribute: str, reason: str
) -> None:
    setattr(live.routes, attribute, Unavailable("gateway away"))
    seen = {"fail_reads": look, "fail_writes": act}[attribute]

    expect_condition(await seen(CleanupComplete(live.ports), deployment), UNKNOWN, reason)


async def test_cleanup_of_a_first_rollout_that_never_completed(rig: ControlRig) -> None:
    await rig.provide()
    await rig.list_model("m1", Phase.CANARY, replica="triton-is-c1-0")
    deployment = a_deployment(candidate="m1", stage=CLEANING, placed=["c1"])

    await acts(CleanupComplete(rig.ports), deployment, rig)

    expect_condition(await look(CleanupComplete(rig.ports), deployment), TRUE)
    assert rig.entries() == {}


async def test_cleanup_without_a_record_looks_in_the_servers_clusters(
    live: ControlRig, deployment: v2.Deployment
) -> None:
    deployment.metadata.annotations.clear()

    await act(CleanupComplete(live.ports), deployment)

    assert (live.entries("c1"), live.entries("c2")) == ({}, {})


async def test_cleanup_never_waits_for_a_server_that_is_gone(rig: ControlRig) -> None:
    deployment = a_deployment(current="m1", stage=CLEANING, placed=["c1", "c2"])

    expect_condition(await act(CleanupComplete(rig.ports), deployment), TRUE)


async def test_cleanup_of_a_deployment_that_names_no_server(rig: ControlRig) -> None:
    deployment = a_deployment(server="", stage=CLEANING)

    expect_condition(await act(CleanupComplete(rig.ports), deployment), TRUE)


async def test_cleanup_retries_a_store_that_does_not_answer(rig: ControlRig) -> None:
    assert isinstance(rig.store, FakeStore)
    rig.store.fail_next(Unavailable("store away"))

    expect_condition(
        await look(CleanupComplete(rig.ports), a_deployment(current="m1", stage=CLEANING)),
        UNKNOWN,
        "UnableToReadTargetClusters",
    )


async def test_cleanup_works_on_the_server_it_was_placed_on(
    live: ControlRig, deployment: v2.Deployment
) -> None:
    deployment.spec.inference_server.name = "elsewhere"

    await act(CleanupComplete(live.ports), deployment)

    assert (live.entries("c1"), live.entries("c2")) == ({}, {})


async def test_steady_state_is_true_and_writes_nothing_while_all_is_well(
    live: ControlRig, deployment: v2.Deployment
) -> None:
    before = list(live.writes)

    expect_condition(await act(StateSteady(live.ports), deployment), TRUE)
    assert live.writes == before


async def test_steady_state_without_a_model_has_nothing_to_keep(rig: ControlRig) -> None:
    deployment = a_deployment(candidate="m1", stage=COMPLETE)

    expect_condition(await act(StateSteady(rig.ports), deployment), TRUE)


async def test_steady_state_says_that_the_server_is_gone(rig: ControlRig) -> None:
    deployment = a_deployment(candidate="m1", current="m1", stage=COMPLETE, placed=["c1"])

    expect_condition(
        await act(StateSteady(rig.ports), deployment), UNKNOWN, "NotServing", says="is gone"
    )


async def delete_server(rig: ControlRig) -> None:
    server = await rig.server()
    server.metadata.finalizers.append("held")
    await rig.store.update(server)
    await rig.store.delete(v2.InferenceServer, SERVER)


async def decommission_server(rig: ControlRig) -> None:
    server = await rig.server()
    server.spec.decom_spec.decommission = True
    await rig.store.update(server)


@pytest.mark.parametrize("seed", [delete_server, decommission_server])
async def test_steady_state_leaves_a_server_that_is_going_alone(
    live: ControlRig, deployment: v2.Deployment, seed: Seed
) -> None:
    await seed(live)
    await live.site().remove_entry(M1, "Seed")

    expect_condition(await act(StateSteady(live.ports), deployment), TRUE)
    assert live.entries("c1") == {}


async def test_a_lost_entry_is_made_again_in_a_rollouts_order(
    live: ControlRig, deployment: v2.Deployment
) -> None:
    await live.site().remove_entry(M1, "Seed")
    actor = StateSteady(live.ports)

    expect_condition(
        await look(actor, deployment), UNKNOWN, "Drifted", says="cluster c1 does not serve m1"
    )
    expect_condition(await act(actor, deployment), UNKNOWN, "Repairing", says="loading model m1")
    assert live.entries("c1") == {"m1": Phase.STAGED}
    await acts(actor, deployment, live)

    expect_condition(await look(actor, deployment), TRUE)
    assert live.entries("c1") == {"m1": Phase.SERVING}


async def test_a_lost_route_is_made_again(live: ControlRig, deployment: v2.Deployment) -> None:
    await live.site("c2").unroute("Seed")

    await acts(StateSteady(live.ports), deployment, live)

    assert await live.site("c2").is_routed(M1)


async def test_a_lost_rule_of_the_gateway_is_made_again(
    live: ControlRig, deployment: v2.Deployment
) -> None:
    await discovery_of(live.ports, deployment).remove()
    actor = StateSteady(live.ports)

    expect_condition(await look(actor, deployment), UNKNOWN, "Drifted", says="the gateway")
    expect_condition(await act(actor, deployment), UNKNOWN, "Repaired")
    expect_condition(await act(actor, deployment), TRUE)


@pytest.mark.parametrize("lost", PLACEMENT)
async def test_a_lost_placement_record_is_written_again(
    live: ControlRig, deployment: v2.Deployment, lost: str
) -> None:
    whole = dict(deployment.metadata.annotations)
    del deployment.metadata.annotations[lost]
    actor = StateSteady(live.ports)

    expect_condition(await look(actor, deployment), UNKNOWN, "Drifted", "the placement record")
    await act(actor, deployment)

    assert dict(deployment.metadata.annotations) == whole
    expect_condition(await look(actor, deployment), TRUE)


async def test_a_cluster_added_later_gets_the_model(
    rig: ControlRig,
) -> None:
    await rig.provide(clusters=("c1", "c2"))
    await rig.store.create(a_model("m1"))
    await rig.serve("m1", cluster="c1")
    deployment = a_deployment(candidate="m1", current="m1", stage=COMPLETE, placed=["c1"])
    await discovery_of(rig.ports, deployment).add()

    await acts(StateSteady(rig.ports), deployment, rig)

    assert rig.entries("c2") == {"m1": Phase.SERVING}
    assert await rig.site("c2").is_routed(M1)
    assert "c2" in deployment.metadata.annotations[TARGET_CLUSTERS]


async def test_a_cluster_that_does_not_serve_is_left_alone(
    live: ControlRig, deployment: v2.Deployment
) -> None:
    server = await live.server()
    server.status.cluster_statuses[1].state = v2.INFERENCE_SERVER_STATE_CREATING
    await live.store.update_status(server)
    await live.site("c2").remove_entry(M1, "Seed")

    expect_condition(await act(StateSteady(live.ports), deployment), TRUE)


async def test_a_cluster_that_left_the_server_leaves_the_placement_record(
    live: ControlRig, deployment: v2.Deployment
) -> None:
    server = await live.server()
    del server.spec.cluster_targets[1]
    await live.store.update(server)
    actor = StateSteady(live.ports)

    expect_condition(await act(actor, deployment), UNKNOWN, "Repaired")

    assert [target.cluster_id for target in snapshot_of(deployment)] == ["c1"]
    expect_condition(await look(actor, deployment), TRUE)


async def test_a_repair_keeps_clusters_that_do_not_serve_now_in_the_record(
    live: ControlRig, deployment: v2.Deployment
) -> None:
    server = await live.server()
    server.status.cluster_statuses[1].state = v2.INFERENCE_SERVER_STATE_CREATING
    await live.store.update_status(server)
    await discovery_of(live.ports, deployment).remove()

    await act(StateSteady(live.ports), deployment)

    assert [target.cluster_id for target in snapshot_of(deployment)] == ["c1", "c2"]


async def test_a_model_left_over_in_a_cluster_is_removed(
    live: ControlRig, deployment: v2.Deployment
) -> None:
    await live.list_model("m0", cluster="c2")
    await live.list_model("m0", cluster="c2", deployment="other")
    actor = StateSteady(live.ports)

    expect_condition(await look(actor, deployment), UNKNOWN, "Drifted", says="cluster c2")
    await acts(actor, deployment, live)

    expect_condition(await look(actor, deployment), TRUE)
    assert live.entries("c2") == {"m1": Phase.SERVING}
    assert live.entries("c2", deployment="other") == {"m0": Phase.SERVING}


async def test_a_repair_that_cannot_load_says_so_and_goes_on_trying(
    live: ControlRig, deployment: v2.Deployment
) -> None:
    live.world.broken["m1"] = "bad disk"
    live.world.kill(SERVER, C1, 0)
    live.advance(5)
    live.advance(5)
    await live.site().unroute("Seed")

    expect_condition(
        await act(StateSteady(live.ports), deployment), UNKNOWN, "Repairing", says="bad disk"
    )


async def test_a_cluster_that_cannot_be_repaired_keeps_no_other_from_it(
    live: ControlRig, deployment: v2.Deployment
) -> None:
    live.world.broken["m1"] = "bad disk"
    live.world.kill(SERVER, C1, 0)
    live.advance(5)
    live.advance(5)
    await live.site("c1").unroute("Seed")
    await live.site("c2").unroute("Seed")
    await discovery_of(live.ports, deployment).remove()

    expect_condition(
        await act(StateSteady(live.ports), deployment), UNKNOWN, "Repairing", says="cluster c1"
    )

    assert await live.site("c2").is_routed(M1)
    assert await discovery_of(live.ports, deployment).is_live()


async def test_a_repair_of_a_model_that_is_listed_needs_no_resource(
    live: ControlRig, deployment: v2.Deployment
) -> None:
    await live.store.delete(v2.Model, Key("ns", "m1"))
    await live.site().unroute("Seed")

    await acts(StateSteady(live.ports), deployment, live)

    assert await live.site().is_routed(M1)


async def test_a_repair_needs_no_resource_while_another_cluster_tells_the_path(
    live: ControlRig, deployment: v2.Deployment
) -> None:
    await live.store.delete(v2.Model, Key("ns", "m1"))
    await live.site().remove_entry(M1, "Seed")

    await acts(StateSteady(live.ports), deployment, live)

    assert live.entries("c1") == live.entries("c2") == {"m1": Phase.SERVING}


async def test_a_repair_of_a_model_that_is_gone_says_so(
    live: ControlRig, deployment: v2.Deployment
) -> None:
    await live.store.delete(v2.Model, Key("ns", "m1"))
    await live.site("c1").remove_entry(M1, "Seed")
    await live.site("c2").remove_entry(M1, "Seed")

    expect_condition(await act(StateSteady(live.ports), deployment), FALSE, "ModelNotFound")


@pytest.mark.parametrize(
    ("error", "status", "reason"),
    [
        pytest.param(Unavailable("away"), UNKNOWN, "ModelStatusCheckFailed", id="away"),
        pytest.param(Denied("forbidden"), FALSE, "ProxyDenied", id="denied"),
    ],
)
async def test_trouble_in_a_repair_has_its_reason(
    live: ControlRig,
    deployment: v2.Deployment,
    error: Unavailable | Denied,
    status: int,
    reason: str,
) -> None:
    await live.site().unroute("Seed")
    live.backend.fail_reads = error

    condition = await act(StateSteady(live.ports), deployment)

    assert (condition.status, condition.reason) == (status, reason)


async def test_steady_state_retries_a_store_that_does_not_answer(
    live: ControlRig, deployment: v2.Deployment
) -> None:
    assert isinstance(live.store, FakeStore)
    live.store.fail_next(Unavailable("store away"))

    expect_condition(
        await look(StateSteady(live.ports), deployment), UNKNOWN, "InferenceServerReadFailed"
    )
