"""Rollback: the previous model is back, the candidate is gone (behaviour 5.11)."""

from collections.abc import Awaitable, Callable

import pytest

from maserve.base.errors import Denied, Unavailable
from maserve.base.keys import ClusterId, ModelName
from maserve.conditions import FALSE, TRUE, UNKNOWN
from maserve.deployment.stock.discovery import discovery_of
from maserve.deployment.stock.rollback.restored import Restored
from maserve.deployment.stock.rollback.rollback_complete import RollbackComplete
from maserve.modelconfig import Phase
from maserve.testing.builders import SERVER, a_deployment, a_model, a_revision
from maserve.testing.control_rig import ControlRig
from maserve.testing.expect import act, expect_condition, look
from maserve.wire import v2

BUDGET_S = 900.0
C1 = ClusterId("c1")
M1, M2 = ModelName("m1"), ModelName("m2")
ROLLING_BACK = v2.DEPLOYMENT_STAGE_ROLLBACK_IN_PROGRESS


@pytest.fixture
async def served(rig: ControlRig) -> ControlRig:
    """Have a world in which m1 was served and m2 is on its way."""
    await rig.provide()
    await rig.store.create(a_model("m1"))
    await rig.serve("m1")
    await rig.list_model("m2", Phase.STAGED)
    return rig


@pytest.fixture
def deployment() -> v2.Deployment:
    return a_deployment(
        desired="m2", candidate="m2", current="m1", stage=ROLLING_BACK, placed=["c1"]
    )


@pytest.fixture
def first() -> v2.Deployment:
    return a_deployment(desired="m2", candidate="m2", stage=ROLLING_BACK, placed=["c1"])


async def repeat(actor: Restored, deployment: v2.Deployment, rig: ControlRig) -> None:
    for _ in range(6):
        await act(actor, deployment)
        rig.advance(rig.world.load_s)


async def test_a_candidate_that_never_served_is_only_removed(
    served: ControlRig, deployment: v2.Deployment
) -> None:
    actor = Restored(served.site())

    expect_condition(
        await look(actor, deployment), UNKNOWN, "CandidateStillInModelConfig", says="m2"
    )
    expect_condition(await act(actor, deployment), UNKNOWN, "RestoringPreviousModel")
    expect_condition(await act(actor, deployment), TRUE)
    assert served.entries() == {"m1": Phase.SERVING}
    assert await served.site().is_routed(M1)


async def test_traffic_goes_back_to_the_previous_model(
    served: ControlRig, deployment: v2.Deployment
) -> None:
    await served.serve("m2")
    actor = Restored(served.site())

    expect_condition(await look(actor, deployment), UNKNOWN, "PreviousModelNotServing")
    await act(actor, deployment)

    expect_condition(await look(actor, deployment), TRUE)
    assert await served.site().is_routed(M1)


async def test_the_candidate_stays_until_the_data_plane_has_let_go_of_it(
    served: ControlRig, deployment: v2.Deployment
) -> None:
    await served.serve("m2")
    served.routes.hold()
    actor = Restored(served.site())

    expect_condition(
        await act(actor, deployment), UNKNOWN, "RestoringPreviousModel", says="switching to model"
    )
    assert served.entries() == {"m1": Phase.SERVING, "m2": Phase.SERVING}
    served.routes.acknowledge()
    await act(actor, deployment)

    expect_condition(await look(actor, deployment), TRUE)
    assert served.entries() == {"m1": Phase.SERVING}


async def test_a_previous_model_that_was_removed_is_loaded_before_it_is_required(
    served: ControlRig, deployment: v2.Deployment
) -> None:
    await served.serve("m2")
    await served.site().remove_entry(M1, "Seed")
    actor = Restored(served.site())

    await act(actor, deployment)
    assert served.entries() == {"m1": Phase.STAGED, "m2": Phase.SERVING}
    assert await served.site().is_routed(M2)
    served.advance(10)
    await repeat(actor, deployment, served)

    assert served.entries() == {"m1": Phase.SERVING}
    assert await served.site().is_routed(M1)


async def test_a_previous_model_in_an_early_phase_is_widened(
    served: ControlRig, deployment: v2.Deployment
) -> None:
    await served.list_model("m1", Phase.CANARY, replica="triton-is-c1-0")
    actor = Restored(served.site())

    await repeat(actor, deployment, served)

    expect_condition(await look(actor, deployment), TRUE)
    assert served.entries() == {"m1": Phase.SERVING}


async def test_a_previous_model_is_verified_again_after_it_is_required(
    served: ControlRig, deployment: v2.Deployment
) -> None:
    await served.list_model("m1", Phase.STAGED)

    await act(Restored(served.site()), deployment)

    assert served.entries() == {"m1": Phase.SERVING}


async def test_a_rollback_waits_for_every_replica(
    served: ControlRig, deployment: v2.Deployment
) -> None:
    await served.serve("m2")
    served.world.kill(SERVER, C1, 0)

    expect_condition(
        await act(Restored(served.site()), deployment),
        UNKNOWN,
        "RestoringPreviousModel",
        says="model m1 in cluster c1: 1/2 replicas ready",
    )
    assert await served.site().is_routed(M2)


async def test_a_cluster_the_candidate_never_reached_is_confirmed_too(
    served: ControlRig, deployment: v2.Deployment
) -> None:
    await served.site().remove_entry(M2, "Seed")
    served.world.kill(SERVER, C1, 0)
    actor = Restored(served.site())

    expect_condition(
        await act(actor, deployment), UNKNOWN, "RestoringPreviousModel", says="1/2 replicas ready"
    )
    served.advance(served.world.start_s)
    served.advance(served.world.load_s)
    expect_condition(await act(actor, deployment), TRUE)


async def test_a_confirmed_cluster_is_not_judged_again(
    served: ControlRig, deployment: v2.Deployment
) -> None:
    await served.site().remove_entry(M2, "Seed")
    actor = Restored(served.site())
    await act(actor, deployment)
    served.world.kill(SERVER, C1, 0)

    expect_condition(await act(actor, deployment), TRUE)


async def test_a_rollback_fails_when_its_budget_is_spent(
    served: ControlRig, deployment: v2.Deployment
) -> None:
    await served.serve("m2")
    served.world.kill(SERVER, C1, 0)
    served.world.slow["m1"] = 10_000
    actor = Restored(served.site())
    await act(actor, deployment)
    served.advance(BUDGET_S - 1)
    expect_condition(await act(actor, deployment), UNKNOWN, "RestoringPreviousModel")
    served.advance(1)

    condition = await act(actor, deployment)

    expect_condition(condition, FALSE, "RollbackTimeout")
    assert condition.message.startswith("RestoringPreviousModel: model m1 in cluster c1")
    assert condition.message.endswith("(still failing after 15m)")


async def test_a_previous_model_that_fails_to_load_fails_the_rollback_at_once(
    served: ControlRig, deployment: v2.Deployment
) -> None:
    await served.serve("m2")
    served.world.broken["m1"] = "bad disk"
    served.world.kill(SERVER, C1, 0)
    served.advance(10)
    served.advance(10)

    expect_condition(
        await act(Restored(served.site()), deployment),
        FALSE,
        "PreviousModelLoadFailed",
        says="model m1 failed to load in cluster c1 on replica triton-is-c1-0: bad disk",
    )


async def test_a_previous_model_that_cannot_be_resolved_fails_at_once(
    served: ControlRig, deployment: v2.Deployment
) -> None:
    await served.serve("m2")
    await served.site().remove_entry(M1, "Seed")
    deployment.status.current_revision.CopyFrom(a_revision("m1", "elsewhere"))

    expect_condition(await act(Restored(served.site()), deployment), FALSE, "ModelNotFound")


async def test_a_model_that_is_listed_needs_no_resource_any_more(
    served: ControlRig, deployment: v2.Deployment
) -> None:
    await served.serve("m2")
    deployment.status.current_revision.CopyFrom(a_revision("m1", "elsewhere"))
    actor = Restored(served.site())

    await act(actor, deployment)

    expect_condition(await look(actor, deployment), TRUE)


@pytest.mark.parametrize(
    ("port", "reason"),
    [
        pytest.param("routes", "TrafficRouteRestoreFailed", id="route"),
        pytest.param("model_config", "PromoteModelFailed", id="promotion"),
    ],
)
async def test_a_failed_write_is_retried(
    served: ControlRig, deployment: v2.Deployment, port: str, reason: str
) -> None:
    await served.serve("m2")
    await served.list_model("m1", Phase.STAGED)
    getattr(served, port).fail_writes = Unavailable("away")

    expect_condition(await act(Restored(served.site()), deployment), UNKNOWN, reason, says="away")


async def test_a_failed_removal_of_the_candidate_is_retried(
    served: ControlRig, deployment: v2.Deployment
) -> None:
    served.model_config.fail_writes = Unavailable("away")

    expect_condition(
        await act(Restored(served.site()), deployment), UNKNOWN, "RemoveCandidateModelFailed"
    )


async def test_a_denied_proxy_fails_the_rollback_at_once(
    served: ControlRig, deployment: v2.Deployment
) -> None:
    await served.serve("m2")
    served.backend.fail_reads = Denied("pods/proxy is forbidden")

    expect_condition(await act(Restored(served.site()), deployment), FALSE, "ProxyDenied")


@pytest.mark.parametrize(
    ("port", "reason"),
    [
        pytest.param("model_config", "ModelConfigReadFailed", id="config"),
        pytest.param("routes", "TrafficRouteStatusCheckFailed", id="routes"),
    ],
)
async def test_an_unreachable_cluster_is_retried(
    served: ControlRig, deployment: v2.Deployment, port: str, reason: str
) -> None:
    getattr(served, port).fail_reads = Unavailable("away")

    expect_condition(await look(Restored(served.site()), deployment), UNKNOWN, reason, says="away")


async def test_without_a_previous_model_the_route_is_removed(
    rig: ControlRig, first: v2.Deployment
) -> None:
    await rig.provide()
    await rig.serve("m2")
    actor = Restored(rig.site())

    expect_condition(await look(actor, first), UNKNOWN, "TrafficRouteStillPresent", says="m2")
    await act(actor, first)

    expect_condition(await look(actor, first), TRUE)
    assert rig.entries() == {}
    assert not await rig.site().has_rule()


async def test_a_route_that_cannot_be_removed_is_retried(
    rig: ControlRig, first: v2.Deployment
) -> None:
    await rig.provide()
    await rig.serve("m2")
    rig.routes.fail_writes = Unavailable("away")

    expect_condition(await act(Restored(rig.site()), first), UNKNOWN, "TrafficRouteRemovalFailed")


async def test_another_deployments_entry_of_the_candidate_stays(
    served: ControlRig, deployment: v2.Deployment
) -> None:
    await served.list_model("m2", deployment="other")

    await act(Restored(served.site()), deployment)

    assert served.entries(deployment="other") == {"m2": Phase.SERVING}


async def test_a_serving_model_that_the_status_forgot_is_not_taken_away(
    served: ControlRig, first: v2.Deployment
) -> None:
    actor = Restored(served.site())

    expect_condition(await look(actor, first), UNKNOWN, "PreviousModelNotRecorded", says="m1")
    await act(actor, first)

    expect_condition(await look(actor, first), TRUE)
    assert first.status.current_revision == a_revision("m1")
    assert served.entries() == {"m1": Phase.SERVING}
    assert await served.site().is_routed(M1)


async def test_a_forgotten_model_is_found_after_the_switch_too(
    served: ControlRig, first: v2.Deployment
) -> None:
    await served.serve("m2")
    actor = Restored(served.site())

    await repeat(actor, first, served)

    assert served.entries() == {"m1": Phase.SERVING}
    assert await served.site().is_routed(M1)


async def test_a_leftover_that_does_not_serve_is_not_taken_for_a_previous_model(
    rig: ControlRig, first: v2.Deployment
) -> None:
    await rig.provide()
    rig.world.broken["m0"] = "bad weights"
    await rig.list_model("m0", Phase.SERVING)
    await rig.serve("m2")
    actor = Restored(rig.site())

    await act(actor, first)

    expect_condition(await look(actor, first), TRUE)
    assert rig.entries() == {}


@pytest.fixture
async def half_cleaned(rig: ControlRig) -> ControlRig:
    """Have m2 live in c1 and c2, and m1 removed from c1 already."""
    await rig.provide(clusters=("c1", "c2"))
    await rig.store.create(a_model("m1"))
    await rig.list_model("m1", cluster="c2")
    await rig.serve("m2", cluster="c1")
    await rig.serve("m2", cluster="c2")
    return rig


@pytest.fixture
def second(half_cleaned: ControlRig) -> Restored:
    """Return the step of the cluster in which the previous model is loaded still."""
    return Restored(half_cleaned.site("c2"), (half_cleaned.site("c1"),))


async def test_no_route_goes_back_before_the_previous_model_is_loaded_in_every_cluster(
    half_cleaned: ControlRig, second: Restored, deployment: v2.Deployment
) -> None:
    expect_condition(
        await act(second, deployment),
        UNKNOWN,
        "RestoringPreviousModel",
        says="loading model m1 in cluster c1",
    )
    assert half_cleaned.entries("c1") == {"m2": Phase.SERVING, "m1": Phase.STAGED}
    expect_condition(
        await act(second, deployment), UNKNOWN, "RestoringPreviousModel", says="cluster c1: 0/2"
    )
    assert await half_cleaned.site("c2").is_routed(M2)
    half_cleaned.advance(half_cleaned.world.load_s)

    await act(second, deployment)

    expect_condition(await look(second, deployment), TRUE)
    assert await half_cleaned.site("c2").is_routed(M1)


async def cannot_be_reached(rig: ControlRig) -> None:
    rig.model_config.broken[SERVER, C1] = Unavailable("away")


async def cannot_load_it(rig: ControlRig) -> None:
    rig.world.broken["m1"] = "bad disk"
    await rig.list_model("m1", Phase.STAGED)
    await rig.list_model("m1", Phase.STAGED)


async def serves_it(rig: ControlRig) -> None:
    await rig.serve("m1")
    rig.world.kill(SERVER, C1, 0)


@pytest.mark.parametrize("story", [cannot_be_reached, cannot_load_it, serves_it])
async def test_a_cluster_that_has_nothing_to_load_keeps_no_other_waiting(
    half_cleaned: ControlRig,
    second: Restored,
    deployment: v2.Deployment,
    story: Callable[[ControlRig], Awaitable[None]],
) -> None:
    await story(half_cleaned)

    await act(second, deployment)

    assert await half_cleaned.site("c2").is_routed(M1)


async def test_a_cluster_waits_for_the_others_no_longer_than_its_budget(
    half_cleaned: ControlRig, second: Restored, deployment: v2.Deployment
) -> None:
    half_cleaned.world.slow["m1"] = 1e9
    await act(second, deployment)
    half_cleaned.advance(BUDGET_S - 1)
    await act(second, deployment)
    assert await half_cleaned.site("c2").is_routed(M2)
    half_cleaned.advance(1)

    await act(second, deployment)

    assert await half_cleaned.site("c2").is_routed(M1)


async def test_the_last_step_leaves_the_gateways_rule_to_a_previous_model(
    served: ControlRig, deployment: v2.Deployment
) -> None:
    await discovery_of(served.ports, deployment).add()

    expect_condition(await act(RollbackComplete(served.ports), deployment), TRUE)
    assert await discovery_of(served.ports, deployment).is_there()


async def test_the_last_step_mends_the_gateways_rule_of_a_previous_model(
    served: ControlRig, deployment: v2.Deployment
) -> None:
    actor = RollbackComplete(served.ports)

    expect_condition(
        await act(actor, deployment), UNKNOWN, "DiscoveryRouteNotReady", says="taking up the rule"
    )
    expect_condition(await act(actor, deployment), TRUE)
    assert await discovery_of(served.ports, deployment).is_live()


async def test_the_last_step_waits_until_the_gateway_has_taken_the_rule(
    served: ControlRig, deployment: v2.Deployment
) -> None:
    served.routes.hold()
    actor = RollbackComplete(served.ports)
    await act(actor, deployment)

    expect_condition(await act(actor, deployment), UNKNOWN, "DiscoveryRouteNotReady")
    served.routes.acknowledge()
    expect_condition(await act(actor, deployment), TRUE)


async def test_the_last_step_takes_a_first_failure_off_the_gateway(
    rig: ControlRig, first: v2.Deployment
) -> None:
    await rig.provide()
    await discovery_of(rig.ports, first).add()
    actor = RollbackComplete(rig.ports)

    expect_condition(await look(actor, first), UNKNOWN, "DiscoveryRouteStillPresent")
    await act(actor, first)

    expect_condition(await look(actor, first), TRUE)
    assert not await discovery_of(rig.ports, first).is_there()


async def test_the_last_step_keeps_the_gateways_rule_while_a_cluster_has_traffic(
    served: ControlRig,
) -> None:
    forgotten = a_deployment(desired="m9", candidate="m9", stage=ROLLING_BACK)
    await discovery_of(served.ports, forgotten).add()

    expect_condition(await act(RollbackComplete(served.ports), forgotten), TRUE)
    assert await discovery_of(served.ports, forgotten).is_there()


async def test_a_gateway_that_does_not_answer_is_retried(
    rig: ControlRig, first: v2.Deployment
) -> None:
    await rig.provide()
    await discovery_of(rig.ports, first).add()
    rig.routes.fail_writes = Unavailable("away")
    actor = RollbackComplete(rig.ports)

    expect_condition(await act(actor, first), UNKNOWN, "DiscoveryRouteRemovalFailed")
    rig.advance(BUDGET_S)
    expect_condition(await act(actor, first), FALSE, "RollbackTimeout", says="after 15m")
