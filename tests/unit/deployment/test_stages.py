"""From conditions to a stage, and what entering a stage does (behaviour 5.4)."""

import pytest

from maserve.conditions import FALSE, TRUE, UNKNOWN
from maserve.deployment.decide import Lifecycle
from maserve.deployment.keys import (
    has_other_target,
    is_cleanup,
    is_terminal,
    server_name,
    stage_name,
)
from maserve.deployment.stages import enter_stage, failed_stage
from maserve.deployment.stock.stage import parse_stage
from maserve.resource.annotations import (
    BACKEND_TYPE,
    FINISHED_FOR,
    HEALTH_GATE_REASON,
    PLACED_ON,
    PLACEMENT,
    STARTED_FOR,
    TARGET_CLUSTERS,
)
from maserve.resource.metadata import clone
from maserve.testing.builders import a_condition, a_deployment, a_revision
from maserve.wire import api, v2

VALIDATION = v2.DEPLOYMENT_STAGE_VALIDATION
IN_PLACEMENT = v2.DEPLOYMENT_STAGE_PLACEMENT
COMPLETE = v2.DEPLOYMENT_STAGE_ROLLOUT_COMPLETE
FAILED = v2.DEPLOYMENT_STAGE_ROLLOUT_FAILED
ROLLING_BACK = v2.DEPLOYMENT_STAGE_ROLLBACK_IN_PROGRESS
ROLLED_BACK = v2.DEPLOYMENT_STAGE_ROLLBACK_COMPLETE
ROLLBACK_FAILED = v2.DEPLOYMENT_STAGE_ROLLBACK_FAILED
CLEANING = v2.DEPLOYMENT_STAGE_CLEAN_UP_IN_PROGRESS
CLEAN = v2.DEPLOYMENT_STAGE_CLEAN_UP_COMPLETE
CLEAN_FAILED = v2.DEPLOYMENT_STAGE_CLEAN_UP_FAILED

TERMINAL = [COMPLETE, FAILED, ROLLED_BACK, ROLLBACK_FAILED, CLEAN, CLEAN_FAILED]
RUNNING = [v2.DEPLOYMENT_STAGE_INVALID, VALIDATION, IN_PLACEMENT, ROLLING_BACK, CLEANING]

Row = tuple[str, "api.ConditionStatus"]


@pytest.mark.parametrize(
    ("rows", "stage"),
    [
        pytest.param([], IN_PLACEMENT, id="none-leaves-it"),
        pytest.param([("StateSteady", TRUE)], IN_PLACEMENT, id="steady-leaves-it"),
        pytest.param([("StateSteady", UNKNOWN)], IN_PLACEMENT, id="drifted-leaves-it"),
        pytest.param([("Validated", FALSE)], VALIDATION, id="not-validated"),
        pytest.param([("Validated", UNKNOWN)], VALIDATION, id="validating"),
        pytest.param([("Validated", TRUE), ("AssetsPrepared", UNKNOWN)], VALIDATION, id="assets"),
        pytest.param(
            [("Validated", TRUE), ("AssetsPrepared", TRUE), ("PlacementPrepared", UNKNOWN)],
            IN_PLACEMENT,
            id="placement",
        ),
        pytest.param(
            [("Validated", TRUE), ("SoakComplete-c1", UNKNOWN)], IN_PLACEMENT, id="per-cluster"
        ),
        pytest.param(
            [("Validated", TRUE), ("RolloutComplete", UNKNOWN)], IN_PLACEMENT, id="completing"
        ),
        pytest.param([("Validated", TRUE), ("RolloutComplete", TRUE)], COMPLETE, id="complete"),
        pytest.param([("CleanupComplete", TRUE)], CLEAN, id="clean"),
        pytest.param([("CleanupComplete", UNKNOWN)], CLEANING, id="cleaning"),
        pytest.param([("CleanupComplete", FALSE)], CLEANING, id="cleaning-failed"),
        pytest.param([("RollbackComplete", TRUE)], ROLLED_BACK, id="rolled-back"),
        pytest.param([("RollbackComplete", UNKNOWN)], ROLLING_BACK, id="rolling-back"),
        pytest.param(
            [("RollbackComplete-c1", UNKNOWN), ("RollbackComplete", UNKNOWN)],
            ROLLING_BACK,
            id="rolling-back-a-cluster",
        ),
        pytest.param(
            [("RollbackComplete-c1", UNKNOWN), ("RollbackComplete", TRUE)],
            ROLLING_BACK,
            id="the-last-step-is-not-all",
        ),
        pytest.param(
            [("RollbackComplete-c1", TRUE), ("RollbackComplete", TRUE)],
            ROLLED_BACK,
            id="rolled-back-everywhere",
        ),
        pytest.param(
            [("ModelCleanupComplete-c1", UNKNOWN), ("RolloutComplete", TRUE)],
            IN_PLACEMENT,
            id="complete-but-for-one",
        ),
        pytest.param([("RollbackComplete-c1", TRUE)], IN_PLACEMENT, id="a-cluster-is-not-all"),
    ],
)
def test_conditions_tell_the_stage(rows: list[Row], stage: "v2.DeploymentStage") -> None:
    deployment = a_deployment(stage=IN_PLACEMENT)
    deployment.status.conditions.extend(a_condition(type_, status) for type_, status in rows)

    assert parse_stage(deployment) == stage


@pytest.mark.parametrize(
    ("lifecycle", "stage"),
    [
        (Lifecycle.CLEANUP, CLEAN_FAILED),
        (Lifecycle.ROLLBACK, ROLLBACK_FAILED),
        (Lifecycle.ROLLOUT, FAILED),
    ],
)
def test_a_failed_lifecycle_has_its_stage(
    lifecycle: Lifecycle, stage: "v2.DeploymentStage"
) -> None:
    assert failed_stage(lifecycle) == stage


def settled(stage: "v2.DeploymentStage") -> v2.Deployment:
    """Build a Deployment that has just entered `stage`, with something of everything."""
    deployment = a_deployment(
        desired="m2", candidate="m2", current="m1", stage=stage, placed=["c1"]
    )
    deployment.metadata.annotations[HEALTH_GATE_REASON] = "not ready"
    deployment.metadata.annotations[STARTED_FOR] = "ns/m2@1"
    deployment.status.message = "working"
    deployment.status.conditions.append(a_condition("Step", FALSE, reason="Broken"))
    enter_stage(deployment)
    return deployment


@pytest.mark.parametrize("stage", RUNNING)
def test_a_running_stage_changes_nothing(stage: "v2.DeploymentStage") -> None:
    deployment = a_deployment(candidate="m2", current="m1", stage=stage, placed=["c1"])
    deployment.status.conditions.append(a_condition())
    before = clone(deployment)

    enter_stage(deployment)

    assert deployment == before


@pytest.mark.parametrize("stage", TERMINAL)
def test_conditions_stay_with_the_stage_that_they_make(stage: "v2.DeploymentStage") -> None:
    assert [c.reason for c in settled(stage).status.conditions] == ["Broken"]


@pytest.mark.parametrize(
    ("stage", "kept"),
    [
        pytest.param(COMPLETE, ["Broken"], id="complete"),
        pytest.param(FAILED, ["Broken"], id="failed"),
        pytest.param(ROLLED_BACK, ["Broken"], id="rolled-back"),
        pytest.param(CLEAN, ["Broken"], id="clean"),
        pytest.param(ROLLBACK_FAILED, [], id="a-rollback-goes-on"),
        pytest.param(CLEAN_FAILED, [], id="a-cleanup-goes-on"),
    ],
)
def test_a_copy_of_them_outlasts_the_next_pass(
    stage: "v2.DeploymentStage", kept: list[str]
) -> None:
    assert [c.reason for c in settled(stage).status.conditions_snapshot] == kept


def test_a_completed_rollout_makes_the_candidate_current() -> None:
    deployment = settled(COMPLETE)

    assert deployment.status.current_revision == a_revision("m2")
    assert deployment.status.message == ""
    assert HEALTH_GATE_REASON not in deployment.metadata.annotations


@pytest.mark.parametrize("stage", [FAILED, ROLLED_BACK, ROLLBACK_FAILED, CLEAN_FAILED])
def test_what_did_not_complete_leaves_the_current_revision(stage: "v2.DeploymentStage") -> None:
    deployment = settled(stage)

    assert deployment.status.current_revision == a_revision("m1")
    assert deployment.status.candidate_revision == a_revision("m2")
    assert deployment.status.message == "working"


def test_a_failed_rollout_keeps_a_snapshot_of_its_own_conditions() -> None:
    deployment = a_deployment(candidate="m2", stage=FAILED)
    deployment.status.conditions_snapshot.append(a_condition("Earlier"))
    deployment.status.conditions.append(a_condition("Step", FALSE))

    enter_stage(deployment)

    assert [c.type for c in deployment.status.conditions_snapshot] == ["Step"]


def test_a_rollback_is_kept_beside_the_rollout_that_it_undid() -> None:
    deployment = a_deployment(candidate="m2", stage=ROLLED_BACK)
    deployment.status.conditions_snapshot.append(a_condition("Step", FALSE))
    deployment.status.conditions.append(a_condition("RollbackComplete", TRUE))

    enter_stage(deployment)

    assert [c.type for c in deployment.status.conditions_snapshot] == ["Step", "RollbackComplete"]


def test_a_cleaned_deployment_forgets_where_it_was() -> None:
    deployment = settled(CLEAN)

    assert not deployment.status.HasField("current_revision")
    assert not deployment.status.HasField("candidate_revision")
    assert deployment.status.message == ""
    assert not set(PLACEMENT) & set(deployment.metadata.annotations)


@pytest.mark.parametrize("stage", TERMINAL)
def test_the_request_is_finished_at_the_end_of_whatever_came_of_it(
    stage: "v2.DeploymentStage",
) -> None:
    assert settled(stage).metadata.annotations[FINISHED_FOR] == "ns/m2@1"


@pytest.mark.parametrize("stage", TERMINAL)
def test_entering_a_stage_twice_is_entering_it_once(stage: "v2.DeploymentStage") -> None:
    deployment = a_deployment(candidate="m2", current="m1", stage=stage, placed=["c1"])
    enter_stage(deployment)
    once = clone(deployment)

    enter_stage(deployment)

    assert deployment == once


def test_stages_are_sorted_into_terminal_and_cleanup() -> None:
    stages = [v2.DeploymentStage(number) for number in v2.DeploymentStage.values()]

    assert [stage for stage in stages if is_terminal(stage)] == sorted(TERMINAL)
    assert [stage for stage in stages if is_cleanup(stage)] == [CLEANING, CLEAN, CLEAN_FAILED]


def test_a_stage_is_named_as_on_the_wire() -> None:
    assert stage_name(COMPLETE) == "DEPLOYMENT_STAGE_ROLLOUT_COMPLETE"


@pytest.mark.parametrize(
    ("placed_on", "type_", "name", "has_other"),
    [
        pytest.param("", None, "is", False, id="not-placed"),
        pytest.param("", v2.TARGET_TYPE_OFFLINE, "is", False, id="not-placed-other-type"),
        pytest.param("is", None, "is", False, id="placed"),
        pytest.param("old", None, "old", False, id="on-another-server"),
        pytest.param("old", v2.TARGET_TYPE_OFFLINE, "old", True, id="other-type"),
    ],
)
def test_a_placed_deployment_is_served_on_its_server_until_it_has_left(
    placed_on: str, type_: "v2.TargetType | None", name: str, has_other: bool
) -> None:
    deployment = a_deployment()
    deployment.metadata.annotations.update({PLACED_ON: placed_on} if placed_on else {})
    if type_ is not None:
        deployment.spec.definition.type = type_

    assert (server_name(deployment), has_other_target(deployment)) == (name, has_other)


def test_a_placement_is_three_annotations() -> None:
    assert set(PLACEMENT) == {TARGET_CLUSTERS, BACKEND_TYPE, PLACED_ON}
