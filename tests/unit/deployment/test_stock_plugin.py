"""The stock plugin's nine methods: the chain of actors, gate, state, stage and messages."""

from collections.abc import Callable

import pytest
import structlog
from structlog.testing import capture_logs

from maserve.base.errors import Unavailable
from maserve.base.keys import ClusterId
from maserve.conditions import FALSE, TRUE, Plugin
from maserve.deployment import ObservabilityContext, RequestContext
from maserve.deployment.stock import RolloutSettings, StockPlugin
from maserve.deployment.stock.discovery import discovery_of
from maserve.deployment.stock.site import Trouble
from maserve.modelconfig import Phase
from maserve.resource.annotations import (
    HEALTH_GATE_REASON,
    ROLLBACK_REASON,
)
from maserve.testing.builders import SERVER, a_condition, a_deployment, a_model
from maserve.testing.clock import FakeClock
from maserve.testing.control_rig import ControlRig
from maserve.testing.expect import look
from maserve.testing.store_fake import FakeStore
from maserve.wire import v2

OBSERVABILITY = ObservabilityContext(logger=structlog.get_logger())
COMPLETE = v2.DEPLOYMENT_STAGE_ROLLOUT_COMPLETE
CLEAN = v2.DEPLOYMENT_STAGE_CLEAN_UP_COMPLETE
HEALTHY, UNHEALTHY = v2.DEPLOYMENT_STATE_HEALTHY, v2.DEPLOYMENT_STATE_UNHEALTHY
INITIALIZING, EMPTY = v2.DEPLOYMENT_STATE_INITIALIZING, v2.DEPLOYMENT_STATE_EMPTY
PLACEMENT = v2.DEPLOYMENT_STAGE_PLACEMENT
Change = Callable[[v2.Deployment], None]


def rig_with(settings: RolloutSettings) -> ControlRig:
    clock = FakeClock()
    return ControlRig(FakeStore(clock=clock), clock, settings=settings)


def types_of(plugin: Plugin[v2.Deployment]) -> list[str]:
    return [actor.type for actor in plugin.actors]


async def test_a_rollout_is_the_guides_chain_cluster_by_cluster() -> None:
    plugin = rig_with(RolloutSettings(soak_period_s=5)).plugin

    assert types_of(await plugin.rollout_plugin(a_deployment(placed=["c2", "c1"]))) == [
        "Validated",
        "AssetsPrepared",
        "PlacementPrepared",
        "CanaryRolloutComplete-c2",
        "RollingRolloutComplete-c2",
        "TrafficRoutingConfigured-c2",
        "SoakComplete-c2",
        "CanaryRolloutComplete-c1",
        "RollingRolloutComplete-c1",
        "TrafficRoutingConfigured-c1",
        "SoakComplete-c1",
        "DiscoveryRoutingConfigured",
        "ModelCleanupComplete-c2",
        "ModelCleanupComplete-c1",
        "RolloutComplete",
    ]


async def test_before_placement_there_is_no_per_cluster_step(rig: ControlRig) -> None:
    assert types_of(await rig.plugin.rollout_plugin(a_deployment())) == [
        "Validated",
        "AssetsPrepared",
        "PlacementPrepared",
        "DiscoveryRoutingConfigured",
        "RolloutComplete",
    ]


def use_blast(deployment: v2.Deployment) -> None:
    deployment.spec.strategy.blast.SetInParent()


def use_zonal(deployment: v2.Deployment) -> None:
    deployment.spec.strategy.zonal.rollout_period_in_seconds = 1.5


@pytest.mark.parametrize(
    ("settings", "change", "steps"),
    [
        pytest.param(
            RolloutSettings(soak_period_s=5),
            use_blast,
            ["CanaryRolloutComplete-c1", "SoakComplete-c1"],
            id="blast",
        ),
        pytest.param(RolloutSettings(), use_zonal, [], id="zonal"),
        pytest.param(
            RolloutSettings(skip_canary=True), use_zonal, ["CanaryRolloutComplete-c1"], id="skip"
        ),
        pytest.param(RolloutSettings(), lambda _: None, ["SoakComplete-c1"], id="no-soak"),
    ],
)
async def test_a_step_that_settings_or_strategy_leave_out_says_so(
    settings: RolloutSettings, change: Change, steps: list[str]
) -> None:
    rig = rig_with(settings)
    await rig.provide()
    deployment = a_deployment(placed=["c1"])
    change(deployment)

    seen = [
        await look(actor, deployment)
        for actor in (await rig.plugin.rollout_plugin(deployment)).actors
    ]

    skipped = [each for each in seen if each.reason == "Skipped"]
    assert [each.type for each in skipped if each.status == TRUE] == steps
    assert all(each.message for each in skipped)


async def test_a_rollback_goes_through_the_clusters_in_order(rig: ControlRig) -> None:
    assert types_of(await rig.plugin.rollback_plugin(a_deployment(placed=["c2", "c1"]))) == [
        "RollbackComplete-c2",
        "RollbackComplete-c1",
        "RollbackComplete",
    ]


async def test_a_rollback_before_placement_is_one_step(rig: ControlRig) -> None:
    assert types_of(await rig.plugin.rollback_plugin(a_deployment())) == ["RollbackComplete"]


def test_cleanup_and_steady_state_are_one_step_each(rig: ControlRig) -> None:
    assert types_of(rig.plugin.cleanup_plugin()) == ["CleanupComplete"]
    assert types_of(rig.plugin.steady_state_plugin()) == ["StateSteady"]


def test_the_stage_is_parsed_from_the_conditions(rig: ControlRig) -> None:
    deployment = a_deployment()
    deployment.status.conditions.append(a_condition("CleanupComplete", TRUE))

    assert rig.plugin.parse_stage(deployment) == CLEAN


@pytest.fixture
async def live(rig: ControlRig) -> ControlRig:
    await rig.provide(clusters=("c1", "c2"))
    await rig.store.create(a_model("m1"))
    await rig.serve("m1", cluster="c1")
    await rig.serve("m1", cluster="c2")
    await discovery_of(rig.ports, a_deployment()).add()
    return rig


@pytest.fixture
def deployment() -> v2.Deployment:
    return a_deployment(desired="m2", candidate="m2", current="m1", placed=["c1", "c2"])


async def test_no_retrieve_of_any_actor_writes(live: ControlRig, deployment: v2.Deployment) -> None:
    await live.list_model("m2", Phase.STAGED)
    before, version = list(live.writes), (await live.server()).metadata.resourceVersion
    plugins = [
        await live.plugin.rollout_plugin(deployment),
        await live.plugin.rollback_plugin(deployment),
        live.plugin.cleanup_plugin(),
        live.plugin.steady_state_plugin(),
    ]

    seen = [await look(actor, deployment) for plugin in plugins for actor in plugin.actors]

    assert len(seen) == 20
    assert live.writes == before
    assert (await live.server()).metadata.resourceVersion == version
    assert not deployment.status.conditions


@pytest.mark.parametrize("current", ["m1", ""])
async def test_a_rollback_begins_where_nothing_has_to_be_waited_for(
    live: ControlRig, deployment: v2.Deployment, current: str
) -> None:
    deployment.status.current_revision.name = current
    live.model_config.broken[SERVER, ClusterId("c1")] = Unavailable("cluster away")

    chain = types_of(await live.plugin.rollback_plugin(deployment))

    assert chain == ["RollbackComplete-c2", "RollbackComplete-c1", "RollbackComplete"]


async def test_a_passed_gate_removes_the_last_reason(
    live: ControlRig, deployment: v2.Deployment
) -> None:
    deployment.metadata.annotations[HEALTH_GATE_REASON] = "earlier"

    assert await live.plugin.health_check_gate(OBSERVABILITY, deployment)
    assert HEALTH_GATE_REASON not in deployment.metadata.annotations


async def test_a_failed_gate_records_its_reason(
    live: ControlRig, deployment: v2.Deployment
) -> None:
    live.world.kill(SERVER, ClusterId("c2"), 0)
    live.world.kill(SERVER, ClusterId("c2"), 1)

    assert not await live.plugin.health_check_gate(OBSERVABILITY, deployment)
    assert deployment.metadata.annotations[HEALTH_GATE_REASON].startswith(
        "model m1 is not ready in cluster c2: 0/2 replicas ready"
    )


async def test_a_gate_nobody_can_answer_lets_the_rollout_go_on(
    live: ControlRig, deployment: v2.Deployment
) -> None:
    deployment.metadata.annotations[HEALTH_GATE_REASON] = "earlier"
    live.backend.fail_reads = Unavailable("away")

    assert await live.plugin.health_check_gate(OBSERVABILITY, deployment)
    assert deployment.metadata.annotations[HEALTH_GATE_REASON] == "earlier"


UNDONE = v2.DEPLOYMENT_STAGE_ROLLBACK_COMPLETE


@pytest.mark.parametrize(
    ("deployment", "state", "message"),
    [
        pytest.param(a_deployment(), INITIALIZING, "", id="new"),
        pytest.param(a_deployment(candidate="m1", stage=PLACEMENT), INITIALIZING, "", id="first"),
        pytest.param(a_deployment(desired=""), EMPTY, "", id="nothing-wanted"),
        pytest.param(
            a_deployment(candidate="m1", stage=UNDONE),
            UNHEALTHY,
            "Unhealthy: no model is live",
            id="first-failed",
        ),
        pytest.param(
            a_deployment(desired="m2", candidate="m1", stage=UNDONE),
            INITIALIZING,
            "",
            id="another-is-next",
        ),
        pytest.param(
            a_deployment(current="m1", stage=v2.DEPLOYMENT_STAGE_CLEAN_UP_IN_PROGRESS),
            UNHEALTHY,
            "Unhealthy: it is being removed",
            id="going",
        ),
        pytest.param(a_deployment(stage=CLEAN), EMPTY, "", id="cleaned"),
        pytest.param(
            a_deployment(current="m1", placed=["c1"]),
            UNHEALTHY,
            "Unhealthy: InferenceServer ns/is is gone",
            id="server-gone",
        ),
    ],
)
async def test_the_state_without_a_look_at_the_world(
    rig: ControlRig, deployment: v2.Deployment, state: "v2.DeploymentState", message: str
) -> None:
    status = await rig.plugin.get_state(OBSERVABILITY, deployment)

    assert (status.state, status.message) == (state, message)


async def test_a_deployment_that_is_placed_nowhere_serves_nothing(live: ControlRig) -> None:
    status = await live.plugin.get_state(OBSERVABILITY, a_deployment(current="m1"))

    assert (status.state, status.message) == (
        UNHEALTHY,
        "Unhealthy: it is placed in no cluster of InferenceServer ns/is",
    )


async def test_a_deployment_of_another_target_is_invalid(rig: ControlRig) -> None:
    deployment = a_deployment()
    deployment.spec.mobile_spec.SetInParent()

    status = await rig.plugin.get_state(OBSERVABILITY, deployment)

    assert status.state == v2.DEPLOYMENT_STATE_INVALID


@pytest.mark.parametrize(
    ("current", "candidate", "state"),
    [
        pytest.param("m1", "m2", HEALTHY, id="current-is-ready"),
        pytest.param("m0", "m1", HEALTHY, id="candidate-is-ready"),
        pytest.param("m0", "m2", UNHEALTHY, id="neither"),
        pytest.param("m1", "", HEALTHY, id="no-candidate"),
    ],
)
async def test_the_state_is_that_of_current_or_candidate(
    live: ControlRig, current: str, candidate: str, state: "v2.DeploymentState"
) -> None:
    deployment = a_deployment(candidate=candidate, current=current, placed=["c1", "c2"])

    assert (await live.plugin.get_state(OBSERVABILITY, deployment)).state == state


async def test_a_state_nobody_can_tell_is_not_told(
    live: ControlRig, deployment: v2.Deployment
) -> None:
    live.backend.fail_reads = Unavailable("away")

    with pytest.raises(Trouble, match="away"):
        await live.plugin.get_state(OBSERVABILITY, deployment)


async def test_what_is_bad_already_needs_no_look_at_the_rest(
    live: ControlRig, deployment: v2.Deployment
) -> None:
    await live.site("c2").unroute("Seed")
    live.backend.fail_reads = Unavailable("away")

    status = await live.plugin.get_state(OBSERVABILITY, deployment)

    assert (status.state, status.message) == (
        UNHEALTHY,
        "Unhealthy: cluster c2: no traffic goes to m1",
    )


async def test_the_full_status_is_returned_as_a_copy(
    live: ControlRig, deployment: v2.Deployment
) -> None:
    deployment.status.message = "kept"

    status = await live.plugin.get_state(OBSERVABILITY, deployment)

    assert (status.message, status.candidate_revision) == (
        "kept",
        deployment.status.candidate_revision,
    )
    assert status is not deployment.status


def context_of(deployment: v2.Deployment) -> RequestContext:
    return RequestContext(deployment=deployment, logger=structlog.get_logger())


@pytest.mark.parametrize(
    ("message", "reason", "expected"),
    [
        pytest.param("already said", "Alert fired", "already said", id="keeps-a-message"),
        pytest.param("", "Alert fired", "Alert fired: m2 is not live", id="names-the-reason"),
        pytest.param("", "", "DEPLOYMENT_STAGE_ROLLOUT_FAILED: m2 is not live", id="names-stage"),
    ],
)
async def test_a_missing_message_is_filled_in(
    rig: ControlRig, message: str, reason: str, expected: str
) -> None:
    deployment = a_deployment(candidate="m2", stage=v2.DEPLOYMENT_STAGE_ROLLOUT_FAILED)
    deployment.status.message = message
    deployment.metadata.annotations[ROLLBACK_REASON] = reason

    await rig.plugin.populate_message(context_of(deployment), deployment)

    assert deployment.status.message == expected


async def test_the_first_unmet_condition_is_logged(rig: ControlRig) -> None:
    deployment = a_deployment()
    deployment.status.conditions.extend(
        [a_condition("A", TRUE), a_condition("B", FALSE, reason="Broken", message="no disk")]
    )

    with capture_logs() as logs:
        await rig.plugin.populate_deployment_logs(context_of(deployment), deployment)

    assert logs == [
        {
            "log_level": "error",
            "event": "deployment terminal stage",
            "condition": "B",
            "reason": "Broken",
            "message": "no disk",
        }
    ]


async def test_nothing_is_logged_when_all_are_met(rig: ControlRig) -> None:
    with capture_logs() as logs:
        await StockPlugin(rig.ports).populate_deployment_logs(
            context_of(a_deployment()), a_deployment()
        )

    assert logs == []
