"""Steps that never fail: housekeeping for a model that is live everywhere (ADR 0023)."""

from collections.abc import Awaitable, Callable

import pytest

from maserve.base.errors import Denied, Error, Unavailable
from maserve.base.keys import ModelName
from maserve.conditions import FALSE, TRUE, UNKNOWN, ConditionActor
from maserve.deployment.stock.rollout.discovery_routing import DiscoveryRouting
from maserve.deployment.stock.rollout.model_cleanup import ModelCleanup
from maserve.deployment.stock.rollout.traffic import Traffic
from maserve.modelconfig import Phase
from maserve.testing.builders import a_deployment, a_model
from maserve.testing.control_rig import ControlRig
from maserve.testing.expect import act, expect_condition, look
from maserve.wire import v2

BUDGET_S = 900.0
M2 = ModelName("m2")

Actor = ConditionActor[v2.Deployment]
Story = Callable[[ControlRig, v2.Deployment], Awaitable[None]]


@pytest.fixture
async def served(rig: ControlRig) -> ControlRig:
    """Have m2 live in both clusters, with m1 still listed."""
    await rig.provide(clusters=("c1", "c2"))
    await rig.store.create(a_model("m2"))
    for cluster in ("c1", "c2"):
        await rig.list_model("m1", cluster=cluster)
        await rig.serve("m2", cluster=cluster)
    return rig


@pytest.fixture
def deployment() -> v2.Deployment:
    return a_deployment(desired="m2", candidate="m2", current="m1", placed=["c1", "c2"])


async def run_chain(rig: ControlRig, deployment: v2.Deployment, passes: int = 20) -> None:
    """Make passes of a rollout, as far as the step that cannot be done."""
    for _ in range(passes):
        for actor in (await rig.plugin.rollout_plugin(deployment)).actors:
            if (await act(actor, deployment)).status != TRUE:
                break


async def step(rig: ControlRig, deployment: v2.Deployment, type_: str) -> Actor:
    """Return a step of the rollout as it stands."""
    actors = (await rig.plugin.rollout_plugin(deployment)).actors
    return next(actor for actor in actors if actor.type == type_)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        pytest.param(Unavailable("config away"), "RemoveModelFromConfigFailed", id="away"),
        pytest.param(Denied("read-only"), "ProxyDenied", id="refused"),
    ],
)
async def test_a_previous_model_that_cannot_be_removed_is_removed_some_day(
    served: ControlRig, deployment: v2.Deployment, error: Error, reason: str
) -> None:
    actor = ModelCleanup(served.site())
    served.model_config.fail_writes = error
    await act(actor, deployment)
    served.advance(10 * BUDGET_S)
    expect_condition(await act(actor, deployment), UNKNOWN, reason, says=str(error))
    served.model_config.fail_writes = None
    await act(actor, deployment)

    expect_condition(await act(actor, deployment), TRUE)


async def test_what_cannot_be_done_is_told_once_in_an_event(
    served: ControlRig, deployment: v2.Deployment
) -> None:
    actor = ModelCleanup(served.site())
    served.model_config.fail_writes = Unavailable("config away")
    await act(actor, deployment)
    await act(actor, deployment)

    (event,) = served.recorder.events
    assert event.type == "Warning"
    assert event.message == (
        "ModelCleanupComplete-c1: RemoveModelFromConfigFailed: config away; "
        "the model is live, this is tried again"
    )


async def test_a_gateway_that_takes_no_rule_takes_it_some_day(
    served: ControlRig, deployment: v2.Deployment
) -> None:
    actor = DiscoveryRouting(served.ports)
    served.routes.fail_writes = Unavailable("gateway away")
    await act(actor, deployment)
    served.advance(10 * BUDGET_S)
    expect_condition(await act(actor, deployment), UNKNOWN, "DiscoveryRouteUpsertFailed")
    served.routes.fail_writes = None
    await act(actor, deployment)

    expect_condition(await act(actor, deployment), TRUE)


@pytest.fixture
async def live(served: ControlRig, deployment: v2.Deployment) -> ControlRig:
    """Have a rollout that has only the previous model to remove, and cannot."""
    served.model_config.fail_writes = Unavailable("config away")
    await run_chain(served, deployment)
    (unmet,) = [c.type for c in deployment.status.conditions if c.status != TRUE]
    assert unmet == "ModelCleanupComplete-c1"
    return served


async def lose_the_entry(rig: ControlRig, _deployment: v2.Deployment) -> None:
    rig.model_config.fail_writes = None
    await rig.site("c2").remove_entry(M2, "Seed")


async def lose_the_route(rig: ControlRig, _deployment: v2.Deployment) -> None:
    rig.model_config.fail_writes = None
    await rig.site("c2").route_to(ModelName("m1"), "Seed")


@pytest.mark.parametrize("loss", [lose_the_entry, lose_the_route])
async def test_what_a_live_model_loses_is_made_again(
    live: ControlRig, deployment: v2.Deployment, loss: Story
) -> None:
    await loss(live, deployment)
    actor = await step(live, deployment, "TrafficRoutingConfigured-c2")
    live.advance(2 * BUDGET_S)
    await act(actor, deployment)
    live.advance(live.world.load_s)
    await act(actor, deployment)

    expect_condition(await act(actor, deployment), TRUE)
    assert live.entries("c2")["m2"] == Phase.SERVING
    assert await live.site("c2").is_routed(M2)


async def test_a_cluster_that_cannot_be_asked_keeps_a_live_model_from_nothing(
    live: ControlRig, deployment: v2.Deployment
) -> None:
    live.model_config.fail_reads = Unavailable("config away")
    live.routes.fail_reads = Unavailable("gateway away")

    actor = await step(live, deployment, "TrafficRoutingConfigured-c2")

    expect_condition(await look(actor, deployment), TRUE)


async def test_no_step_of_a_live_model_fails(live: ControlRig, deployment: v2.Deployment) -> None:
    deployment.spec.inference_server.name = ""
    actor = await step(live, deployment, "Validated")

    expect_condition(await act(actor, deployment), UNKNOWN, "NoInferenceServer")


async def test_a_lost_entry_still_fails_a_model_that_is_not_live_everywhere(
    served: ControlRig, deployment: v2.Deployment
) -> None:
    await served.site("c2").remove_entry(M2, "Seed")

    expect_condition(await act(Traffic(served.site("c2")), deployment), FALSE, "ModelEntryMissing")
