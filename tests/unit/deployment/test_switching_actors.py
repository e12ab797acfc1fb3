"""Traffic, soak, discovery, model cleanup and completion: the second half of a rollout."""

import pytest

from maserve.base.errors import Denied, Unavailable
from maserve.base.keys import ClusterId, Key, ModelName
from maserve.conditions import FALSE, TRUE, UNKNOWN
from maserve.deployment.stock.discovery import discovery_of
from maserve.deployment.stock.rollout.discovery_routing import DiscoveryRouting
from maserve.deployment.stock.rollout.model_cleanup import ModelCleanup
from maserve.deployment.stock.rollout.rollout_complete import LEGACY, RolloutComplete
from maserve.deployment.stock.rollout.traffic import Traffic
from maserve.modelconfig import Phase
from maserve.testing.builders import NAMESPACE, SERVER, a_deployment
from maserve.testing.control_rig import ControlRig
from maserve.testing.expect import act, expect_condition, look
from maserve.wire import v2

BUDGET_S = 900.0
C1 = ClusterId("c1")
M1, M2 = ModelName("m1"), ModelName("m2")


@pytest.fixture
async def served(rig: ControlRig) -> ControlRig:
    await rig.provide(clusters=("c1", "c2"))
    await rig.serve("m1")
    return rig


@pytest.fixture
def deployment() -> v2.Deployment:
    return a_deployment(desired="m2", candidate="m2", current="m1", placed=["c1", "c2"])


async def test_traffic_switches_only_after_promotion_and_verification(
    served: ControlRig, deployment: v2.Deployment
) -> None:
    await served.list_model("m2", Phase.STAGED)
    actor = Traffic(served.site())

    expect_condition(await look(actor, deployment), UNKNOWN, "ModelNotPromoted")
    expect_condition(await act(actor, deployment), UNKNOWN, "TrafficRouteNotReady")
    expect_condition(await look(actor, deployment), TRUE)

    assert served.entries() == {"m1": Phase.SERVING, "m2": Phase.SERVING}
    assert await served.site().is_routed(M2)


async def test_traffic_waits_for_every_replica_after_the_promotion(
    served: ControlRig, deployment: v2.Deployment
) -> None:
    await served.list_model("m2", Phase.STAGED, loaded=False)
    actor = Traffic(served.site())

    expect_condition(
        await act(actor, deployment), UNKNOWN, "WaitingForReplicas", says="0/2 replicas ready"
    )
    assert served.entries()["m2"] == Phase.SERVING
    assert await served.site().is_routed(M1)


async def test_traffic_that_waits_too_long_fails(
    served: ControlRig, deployment: v2.Deployment
) -> None:
    served.world.slow["m2"] = 10_000
    await served.list_model("m2", Phase.STAGED)
    actor = Traffic(served.site())
    await act(actor, deployment)
    served.advance(BUDGET_S)

    condition = await act(actor, deployment)

    expect_condition(condition, FALSE, "TrafficRoutingTimeout", says="WaitingForReplicas: model m2")
    assert await served.site().is_routed(M1)


async def test_traffic_does_not_count_before_the_data_plane_has_acknowledged(
    served: ControlRig, deployment: v2.Deployment
) -> None:
    await served.list_model("m2", Phase.STAGED)
    served.routes.hold()
    actor = Traffic(served.site())

    await act(actor, deployment)
    expect_condition(await act(actor, deployment), UNKNOWN, "TrafficRouteNotReady")
    served.routes.acknowledge()
    expect_condition(await look(actor, deployment), TRUE)


async def test_traffic_without_the_entry_fails_at_once(
    served: ControlRig, deployment: v2.Deployment
) -> None:
    expect_condition(
        await act(Traffic(served.site()), deployment),
        FALSE,
        "ModelEntryMissing",
        says="the entry of model m2 is gone from cluster c1",
    )


async def test_a_replica_that_fails_before_the_switch_fails_the_rollout(
    served: ControlRig, deployment: v2.Deployment
) -> None:
    served.world.broken["m2"] = "bad weights"
    await served.list_model("m2", Phase.STAGED)

    expect_condition(
        await act(Traffic(served.site()), deployment), FALSE, "ModelLoadFailed", says="bad weights"
    )
    assert await served.site().is_routed(M1)


async def test_a_failed_promotion_is_retried(served: ControlRig, deployment: v2.Deployment) -> None:
    await served.list_model("m2", Phase.STAGED)
    served.model_config.fail_writes = Unavailable("config away")

    expect_condition(
        await act(Traffic(served.site()), deployment), UNKNOWN, "PromoteModelFailed", "config away"
    )


async def test_a_failed_route_write_is_retried(
    served: ControlRig, deployment: v2.Deployment
) -> None:
    await served.list_model("m2", Phase.STAGED)
    served.routes.fail_writes = Unavailable("gateway away")
    actor = Traffic(served.site())

    expect_condition(await act(actor, deployment), UNKNOWN, "TrafficRouteUpsertFailed")
    served.advance(BUDGET_S)
    expect_condition(
        await act(actor, deployment),
        FALSE,
        "TrafficRoutingTimeout",
        says="TrafficRouteUpsertFailed: gateway away (still failing after 15m)",
    )


async def test_trouble_long_after_the_switch_has_a_budget_of_its_own(
    served: ControlRig, deployment: v2.Deployment
) -> None:
    await served.list_model("m2", Phase.STAGED)
    actor = Traffic(served.site())
    await act(actor, deployment)
    expect_condition(await act(actor, deployment), TRUE)
    served.advance(2 * BUDGET_S)
    served.routes.fail_reads = Unavailable("gateway away")

    expect_condition(await act(actor, deployment), UNKNOWN, "TrafficRouteNotReady")
    served.advance(BUDGET_S - 1)
    expect_condition(await act(actor, deployment), UNKNOWN, "TrafficRouteNotReady")
    served.advance(1)
    expect_condition(await act(actor, deployment), FALSE, "TrafficRoutingTimeout")


async def test_trouble_that_has_passed_does_not_count_for_the_next(
    served: ControlRig, deployment: v2.Deployment
) -> None:
    await served.list_model("m2", Phase.STAGED)
    actor = Traffic(served.site())
    served.routes.fail_writes = Unavailable("gateway away")
    await act(actor, deployment)
    served.advance(BUDGET_S - 1)
    served.routes.fail_writes = None
    await act(actor, deployment)
    expect_condition(await act(actor, deployment), TRUE)
    served.routes.fail_reads = Unavailable("gateway away again")
    served.advance(1)

    expect_condition(await act(actor, deployment), UNKNOWN, "TrafficRouteNotReady")


async def test_a_route_that_cannot_be_read_is_retried(
    served: ControlRig, deployment: v2.Deployment
) -> None:
    await served.list_model("m2", Phase.SERVING)
    served.routes.fail_reads = Unavailable("gateway away")

    expect_condition(
        await look(Traffic(served.site()), deployment), UNKNOWN, "TrafficRouteStatusCheckFailed"
    )


async def test_a_denied_proxy_fails_the_switch_at_once(
    served: ControlRig, deployment: v2.Deployment
) -> None:
    await served.list_model("m2", Phase.STAGED)
    served.backend.fail_reads = Denied("pods/proxy is forbidden")

    expect_condition(await act(Traffic(served.site()), deployment), FALSE, "ProxyDenied")


async def test_discovery_adds_the_deployments_rule(
    served: ControlRig, deployment: v2.Deployment
) -> None:
    actor = DiscoveryRouting(served.ports)

    expect_condition(await look(actor, deployment), UNKNOWN, "DiscoveryRouteNotReady")
    await act(actor, deployment)
    expect_condition(await look(actor, deployment), TRUE)


async def test_discovery_waits_for_the_gateways_acknowledgement(
    served: ControlRig, deployment: v2.Deployment
) -> None:
    served.routes.hold()
    actor = DiscoveryRouting(served.ports)
    await act(actor, deployment)

    expect_condition(await act(actor, deployment), UNKNOWN, "DiscoveryRouteNotReady")


@pytest.mark.parametrize(
    ("attribute", "reason"),
    [
        pytest.param("fail_reads", "DiscoveryRouteStatusCheckFailed", id="read"),
        pytest.param("fail_writes", "DiscoveryRouteUpsertFailed", id="write"),
    ],
)
async def test_discovery_retries_a_gateway_that_does_not_answer(
    served: ControlRig, deployment: v2.Deployment, attribute: str, reason: str
) -> None:
    setattr(served.routes, attribute, Unavailable("gateway away"))
    actor = DiscoveryRouting(served.ports)
    seen = {"fail_reads": look, "fail_writes": act}[attribute]

    expect_condition(await seen(actor, deployment), UNKNOWN, reason, says="gateway away")


async def test_model_cleanup_removes_the_previous_model_and_no_other_deployments(
    served: ControlRig, deployment: v2.Deployment
) -> None:
    await served.list_model("m2")
    await served.list_model("m1", deployment="other")
    actor = ModelCleanup(served.site())

    expect_condition(await look(actor, deployment), UNKNOWN, "OldModelStillInConfig", says="m1")
    expect_condition(await act(actor, deployment), UNKNOWN, "ModelUnloading", says="m1")
    expect_condition(await look(actor, deployment), TRUE)

    assert served.entries() == {"m2": Phase.SERVING}
    assert served.entries(deployment="other") == {"m1": Phase.SERVING}


async def test_model_cleanup_has_nothing_to_do_without_a_previous_model(
    served: ControlRig,
) -> None:
    deployment = a_deployment(candidate="m1", placed=["c1"])

    expect_condition(await act(ModelCleanup(served.site()), deployment), TRUE)


async def test_completion_drops_legacy_annotations(
    served: ControlRig, deployment: v2.Deployment
) -> None:
    deployment.metadata.annotations.update(dict.fromkeys(LEGACY, "x"))
    actor = RolloutComplete(served.ports, clusters=2)

    expect_condition(await look(actor, deployment), UNKNOWN, "CompletionTasksPending")
    expect_condition(await act(actor, deployment), TRUE)

    assert not set(LEGACY) & set(deployment.metadata.annotations)


async def test_completion_is_remembered(served: ControlRig, deployment: v2.Deployment) -> None:
    actor = RolloutComplete(served.ports, clusters=2)
    condition = await act(actor, deployment)

    expect_condition(await look(actor, deployment), TRUE)
    assert actor.due_in_s(deployment, condition) is None


async def test_a_discovery_rule_can_be_taken_out_again(
    served: ControlRig, deployment: v2.Deployment
) -> None:
    rule = discovery_of(served.ports, deployment)
    await rule.add()
    assert await rule.is_there()

    await rule.remove()

    assert not await rule.is_there()
    assert rule.server == SERVER == Key(NAMESPACE, "is")


async def test_no_cluster_is_no_completion(served: ControlRig, deployment: v2.Deployment) -> None:
    actor = RolloutComplete(served.ports, clusters=0)

    expect_condition(await act(actor, deployment), UNKNOWN, "CompletionTasksPending")
