"""The decision order of one reconcile (behaviour 5.2 and 5.3), row by row."""

from collections.abc import Callable

import pytest

from maserve.deployment.decide import Gate, Lifecycle, decide, needs_gate, rollout_request
from maserve.deployment.keys import (
    ALERT_FIRED,
    DESIRED_CHANGED,
    ROLLOUT_FAILED,
    candidate,
)
from maserve.deployment.stages import enter_stage
from maserve.resource.annotations import (
    CANDIDATE_SERVER,
    HEALTH_GATE_REASON,
    PLACED_ON,
    RETRY,
    ROLLBACK_REASON,
    ROLLOUT_COUNT,
    STARTED_FOR,
)
from maserve.resource.metadata import clone
from maserve.testing.builders import a_condition, a_deployment, a_revision
from maserve.wire import v2

INVALID = v2.DEPLOYMENT_STAGE_INVALID
VALIDATION = v2.DEPLOYMENT_STAGE_VALIDATION
PLACEMENT = v2.DEPLOYMENT_STAGE_PLACEMENT
COMPLETE = v2.DEPLOYMENT_STAGE_ROLLOUT_COMPLETE
FAILED = v2.DEPLOYMENT_STAGE_ROLLOUT_FAILED
ROLLING_BACK = v2.DEPLOYMENT_STAGE_ROLLBACK_IN_PROGRESS
ROLLED_BACK = v2.DEPLOYMENT_STAGE_ROLLBACK_COMPLETE
ROLLBACK_FAILED = v2.DEPLOYMENT_STAGE_ROLLBACK_FAILED
CLEANING = v2.DEPLOYMENT_STAGE_CLEAN_UP_IN_PROGRESS
CLEAN = v2.DEPLOYMENT_STAGE_CLEAN_UP_COMPLETE
CLEAN_FAILED = v2.DEPLOYMENT_STAGE_CLEAN_UP_FAILED

NOT_ASKED = Gate()
HEALTHY = Gate(asked=True, healthy=True)
ILL = Gate(asked=True, healthy=False)

Change = Callable[[v2.Deployment], None]


def delete(deployment: v2.Deployment) -> None:
    deployment.metadata.deletionTimestamp.seconds = 1


def mark_deleted(deployment: v2.Deployment) -> None:
    deployment.spec.deletion_spec.deleted = True


def clear_desired(deployment: v2.Deployment) -> None:
    deployment.spec.ClearField("desired_revision")


def retarget(deployment: v2.Deployment) -> None:
    deployment.metadata.annotations[PLACED_ON] = deployment.spec.inference_server.name
    deployment.spec.definition.type = v2.TARGET_TYPE_OFFLINE


def use_blast(deployment: v2.Deployment) -> None:
    deployment.spec.strategy.blast.SetInParent()


def use_blast_with_trigger(deployment: v2.Deployment) -> None:
    deployment.spec.strategy.blast.with_rollback_trigger = True


def enter(deployment: v2.Deployment, stage: "v2.DeploymentStage") -> None:
    deployment.status.stage = stage
    enter_stage(deployment)


def changed(deployment: v2.Deployment, *changes: Change) -> v2.Deployment:
    for change in changes:
        change(deployment)
    return deployment


@pytest.mark.parametrize(
    ("change", "stage", "entered"),
    [
        pytest.param(delete, INVALID, CLEANING, id="deleted-at-first-sight"),
        pytest.param(delete, PLACEMENT, CLEANING, id="deleted-mid-rollout"),
        pytest.param(delete, ROLLING_BACK, CLEANING, id="deleted-mid-rollback"),
        pytest.param(delete, COMPLETE, CLEANING, id="deleted-at-rest"),
        pytest.param(delete, CLEANING, CLEANING, id="deleted-while-cleaning"),
        pytest.param(delete, CLEAN, CLEAN, id="deleted-after-cleaning"),
        pytest.param(delete, CLEAN_FAILED, CLEAN_FAILED, id="deleted-after-a-failed-cleanup"),
        pytest.param(mark_deleted, COMPLETE, CLEANING, id="deletion-spec"),
        pytest.param(mark_deleted, PLACEMENT, CLEANING, id="deletion-spec-mid-rollout"),
        pytest.param(clear_desired, COMPLETE, CLEANING, id="desired-cleared"),
        pytest.param(clear_desired, PLACEMENT, CLEANING, id="desired-cleared-mid-rollout"),
        pytest.param(retarget, COMPLETE, CLEANING, id="another-type-of-target"),
        pytest.param(retarget, PLACEMENT, CLEANING, id="another-type-mid-rollout"),
    ],
)
def test_row_1_cleanup_comes_first(
    change: Change, stage: "v2.DeploymentStage", entered: "v2.DeploymentStage"
) -> None:
    deployment = a_deployment(desired="m2", candidate="m2", current="m1", stage=stage)

    assert decide(changed(deployment, change), ILL) is Lifecycle.CLEANUP
    assert deployment.status.stage == entered


def test_row_1_an_unset_wish_needs_something_placed() -> None:
    deployment = changed(a_deployment(desired="m1"), clear_desired)

    assert decide(deployment, NOT_ASKED) is Lifecycle.NOTHING


@pytest.mark.parametrize("stage", [INVALID, CLEAN_FAILED])
def test_row_1_a_deletion_in_the_spec_is_a_cleanup_with_nothing_placed_too(
    stage: "v2.DeploymentStage",
) -> None:
    deployment = changed(a_deployment(desired="m1", stage=stage), mark_deleted)

    assert decide(deployment, NOT_ASKED) is Lifecycle.CLEANUP


def test_row_1_a_deletion_in_the_spec_is_cleaned_up_once() -> None:
    deployment = changed(a_deployment(desired="m1"), mark_deleted)
    decide(deployment, NOT_ASKED)
    enter(deployment, CLEAN)

    assert decide(deployment, NOT_ASKED) is Lifecycle.NOTHING
    assert deployment.status.stage == CLEAN


def test_row_1_cleans_a_first_candidate_too() -> None:
    deployment = changed(a_deployment(candidate="m1", stage=PLACEMENT), clear_desired)

    assert decide(deployment, HEALTHY) is Lifecycle.CLEANUP


@pytest.mark.parametrize("change", [mark_deleted, clear_desired, retarget])
def test_row_1_what_is_placed_is_cleaned_though_its_status_was_lost(change: Change) -> None:
    deployment = changed(a_deployment(desired="m1", placed=["c1"]), change)

    assert decide(deployment, NOT_ASKED) is Lifecycle.CLEANUP


def test_a_cleanup_that_has_started_is_finished_first() -> None:
    deployment = a_deployment(desired="m2", candidate="m1", current="m1", stage=CLEANING)

    assert decide(deployment, NOT_ASKED) is Lifecycle.CLEANUP


@pytest.mark.parametrize("stage", [VALIDATION, PLACEMENT])
@pytest.mark.parametrize("gate", [NOT_ASKED, HEALTHY])
def test_row_2_a_healthy_rollout_goes_on(stage: "v2.DeploymentStage", gate: Gate) -> None:
    deployment = a_deployment(desired="m2", candidate="m2", current="m1", stage=stage)
    before = clone(deployment)

    assert decide(deployment, gate) is Lifecycle.ROLLOUT
    assert deployment == before


def test_row_2_a_failed_gate_rolls_back() -> None:
    deployment = a_deployment(desired="m2", candidate="m2", current="m1", stage=PLACEMENT)

    assert decide(deployment, ILL) is Lifecycle.ROLLBACK
    assert deployment.status.stage == ROLLING_BACK
    assert deployment.metadata.annotations[ROLLBACK_REASON] == ALERT_FIRED
    assert deployment.status.message == (
        "health gate failed while rolling out m2; rolling back to m1"
    )


def test_row_2_a_failed_gate_says_why() -> None:
    deployment = a_deployment(desired="m2", candidate="m2", current="m1", stage=PLACEMENT)
    deployment.metadata.annotations[HEALTH_GATE_REASON] = "model m1 is not ready in cluster c1"

    decide(deployment, ILL)

    assert deployment.status.message == (
        "health gate failed while rolling out m2 (model m1 is not ready in cluster c1); "
        "rolling back to m1"
    )


def test_row_2_a_failed_gate_of_a_first_rollout_is_ignored() -> None:
    deployment = a_deployment(desired="m1", candidate="m1", stage=PLACEMENT)

    assert decide(deployment, ILL) is Lifecycle.ROLLOUT


def test_row_2_a_repeated_rollout_of_the_live_model_is_guarded_too() -> None:
    deployment = a_deployment(desired="m1", candidate="m1", current="m1", stage=PLACEMENT)

    assert decide(deployment, ILL) is Lifecycle.ROLLBACK
    assert deployment.metadata.annotations[ROLLBACK_REASON] == ALERT_FIRED


@pytest.mark.parametrize(
    ("desired", "current"),
    [
        pytest.param("m3", "m1", id="another"),
        pytest.param("m1", "m1", id="back-to-current"),
        pytest.param("m3", "", id="during-the-first-rollout"),
    ],
)
def test_row_2_a_changed_desired_model_rolls_back(desired: str, current: str) -> None:
    deployment = a_deployment(desired=desired, candidate="m2", current=current, stage=PLACEMENT)

    assert decide(deployment, HEALTHY) is Lifecycle.ROLLBACK
    assert deployment.status.stage == ROLLING_BACK
    assert deployment.metadata.annotations[ROLLBACK_REASON] == DESIRED_CHANGED
    assert deployment.status.message == (
        f"desired model changed from m2 to {desired}; rolling back first"
    )
    assert candidate(deployment) == "m2"


@pytest.mark.parametrize("gate", [NOT_ASKED, HEALTHY, ILL])
@pytest.mark.parametrize("desired", ["m1", "m2", "m3"])
def test_row_2_a_rollback_that_has_started_runs_to_completion(desired: str, gate: Gate) -> None:
    deployment = a_deployment(desired=desired, candidate="m2", current="m1", stage=ROLLING_BACK)
    deployment.metadata.annotations[ROLLBACK_REASON] = ALERT_FIRED
    before = clone(deployment)

    assert decide(deployment, gate) is Lifecycle.ROLLBACK
    assert deployment == before


@pytest.mark.parametrize(
    ("strategy", "desired", "gate", "lifecycle"),
    [
        pytest.param(use_blast, "m2", ILL, Lifecycle.ROLLOUT, id="blast-gate"),
        pytest.param(use_blast, "m3", HEALTHY, Lifecycle.ROLLOUT, id="blast-desired"),
        pytest.param(use_blast_with_trigger, "m2", ILL, Lifecycle.ROLLBACK, id="trigger-gate"),
        pytest.param(
            use_blast_with_trigger, "m3", HEALTHY, Lifecycle.ROLLBACK, id="trigger-desired"
        ),
        pytest.param(
            use_blast_with_trigger, "m2", HEALTHY, Lifecycle.ROLLOUT, id="trigger-healthy"
        ),
    ],
)
def test_row_2_a_blast_switches_to_rollback_only_with_a_trigger(
    strategy: Change, desired: str, gate: Gate, lifecycle: Lifecycle
) -> None:
    deployment = a_deployment(desired=desired, candidate="m2", current="m1", stage=PLACEMENT)

    assert decide(changed(deployment, strategy), gate) is lifecycle


@pytest.mark.parametrize(
    ("current", "message"),
    [
        pytest.param("m1", "rollout of m2 failed; rolling back to m1", id="second"),
        pytest.param("", "rollout of m2 failed; no previous revision, removing it", id="first"),
    ],
)
@pytest.mark.parametrize("strategy", [use_blast, use_blast_with_trigger, lambda _: None])
def test_row_3_a_failed_rollout_rolls_back(current: str, message: str, strategy: Change) -> None:
    deployment = a_deployment(desired="m2", candidate="m2", current=current, stage=FAILED)

    assert decide(changed(deployment, strategy), NOT_ASKED) is Lifecycle.ROLLBACK
    assert deployment.status.stage == ROLLING_BACK
    assert deployment.status.message == message
    assert deployment.metadata.annotations[ROLLBACK_REASON] == ROLLOUT_FAILED


def test_row_3_keeps_the_cause_in_the_message() -> None:
    deployment = a_deployment(desired="m2", candidate="m2", current="m1", stage=FAILED)
    deployment.status.message = "replica r-0: no such file"

    decide(deployment, NOT_ASKED)

    assert deployment.status.message == (
        "rollout of m2 failed (replica r-0: no such file); rolling back to m1"
    )


def test_row_3_comes_before_a_new_desired_model() -> None:
    deployment = a_deployment(desired="m3", candidate="m2", current="m1", stage=FAILED)

    assert decide(deployment, NOT_ASKED) is Lifecycle.ROLLBACK


@pytest.mark.parametrize("stage", [COMPLETE, ROLLED_BACK, ROLLBACK_FAILED, CLEAN, CLEAN_FAILED])
def test_row_4_a_new_desired_model_starts_a_rollout(stage: "v2.DeploymentStage") -> None:
    deployment = a_deployment(desired="m3", candidate="m2", current="m1", stage=stage)
    deployment.metadata.annotations[ROLLBACK_REASON] = ALERT_FIRED
    deployment.status.message = "earlier trouble"
    deployment.status.conditions.append(a_condition("Old"))

    assert decide(deployment, NOT_ASKED) is Lifecycle.ROLLOUT
    assert deployment.status.stage == VALIDATION
    assert deployment.status.candidate_revision == a_revision("m3")
    assert deployment.status.current_revision == a_revision("m1")
    assert ROLLBACK_REASON not in deployment.metadata.annotations
    assert deployment.status.message == ""
    assert not deployment.status.conditions


def test_row_4_starts_a_first_rollout() -> None:
    deployment = a_deployment(desired="m1")

    assert decide(deployment, NOT_ASKED) is Lifecycle.ROLLOUT
    assert candidate(deployment) == "m1"


def test_row_4_a_failed_rollout_without_a_candidate_starts_anew() -> None:
    deployment = a_deployment(desired="m1", stage=FAILED)

    assert decide(deployment, NOT_ASKED) is Lifecycle.ROLLOUT


def test_row_4_the_same_name_in_another_namespace_is_another_revision() -> None:
    deployment = a_deployment(desired="m1", candidate="m1", current="m1", stage=COMPLETE)
    deployment.spec.desired_revision.namespace = "other"

    assert decide(deployment, NOT_ASKED) is Lifecycle.ROLLOUT


@pytest.mark.parametrize("stage", [COMPLETE, ROLLED_BACK])
def test_row_4_the_current_model_wanted_again_only_settles(stage: "v2.DeploymentStage") -> None:
    deployment = a_deployment(desired="m1", candidate="m2", current="m1", stage=stage)
    deployment.metadata.annotations[ROLLBACK_REASON] = ROLLOUT_FAILED
    deployment.metadata.annotations[ROLLOUT_COUNT] = "4"
    deployment.status.message = "m2 is not live"

    assert decide(deployment, NOT_ASKED) is Lifecycle.STEADY
    assert candidate(deployment) == "m1"
    assert deployment.status.stage == stage
    assert deployment.status.message == ""
    assert dict(deployment.metadata.annotations) == {
        ROLLOUT_COUNT: "4",
        CANDIDATE_SERVER: "is",
    }


@pytest.mark.parametrize("stage", [INVALID, ROLLBACK_FAILED, CLEAN_FAILED])
def test_row_4_the_current_model_is_rolled_out_again_when_undoing_failed(
    stage: "v2.DeploymentStage",
) -> None:
    deployment = a_deployment(desired="m1", candidate="m2", current="m1", stage=stage)

    assert decide(deployment, NOT_ASKED) is Lifecycle.ROLLOUT
    assert candidate(deployment) == "m1"
    assert deployment.status.stage == VALIDATION


@pytest.mark.parametrize("stage", [INVALID, CLEAN_FAILED])
@pytest.mark.parametrize("current", ["m1", ""])
def test_row_4_the_same_model_is_rolled_out_again_when_nobody_knows_what_is_left(
    stage: "v2.DeploymentStage", current: str
) -> None:
    deployment = a_deployment(desired="m1", candidate="m1", current=current, stage=stage)

    assert decide(deployment, NOT_ASKED) is Lifecycle.ROLLOUT
    assert deployment.status.stage == VALIDATION


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(None, "0", id="first"),
        pytest.param("0", "1", id="second"),
        pytest.param("9", "10", id="tenth"),
        pytest.param("many", "0", id="unparsable"),
        pytest.param("-1", "0", id="negative"),
        pytest.param("", "0", id="empty"),
    ],
)
def test_row_4_counts_rollouts(before: str | None, after: str) -> None:
    deployment = a_deployment(desired="m2", candidate="m1", current="m1", stage=COMPLETE)
    deployment.metadata.annotations.update({} if before is None else {ROLLOUT_COUNT: before})

    decide(deployment, NOT_ASKED)

    assert deployment.metadata.annotations[ROLLOUT_COUNT] == after


@pytest.mark.parametrize("stage", [COMPLETE, ROLLED_BACK])
def test_row_5_rest_is_watched(stage: "v2.DeploymentStage") -> None:
    deployment = a_deployment(desired="m1", candidate="m1", current="m1", stage=stage)
    before = clone(deployment)

    assert decide(deployment, NOT_ASKED) is Lifecycle.STEADY
    assert deployment == before


@pytest.mark.parametrize(
    "deployment",
    [
        pytest.param(a_deployment(desired=""), id="nothing-wanted"),
        pytest.param(a_deployment(desired="", stage=CLEAN), id="cleaned"),
    ],
)
def test_otherwise_nothing_is_done(deployment: v2.Deployment) -> None:
    before = clone(deployment)

    assert decide(deployment, NOT_ASKED) is Lifecycle.NOTHING
    assert deployment == before


@pytest.mark.parametrize("current", ["m1", ""])
def test_a_failed_rollback_goes_on(current: str) -> None:
    deployment = a_deployment(desired="m2", candidate="m2", current=current, stage=ROLLBACK_FAILED)
    before = clone(deployment)

    assert decide(deployment, NOT_ASKED) is Lifecycle.ROLLBACK
    assert deployment == before


def test_a_failed_rollout_of_the_live_model_restores_it() -> None:
    deployment = a_deployment(desired="m1", candidate="m1", current="m1", stage=FAILED)
    deployment.status.message = "replica r-0: no such file"

    assert decide(deployment, NOT_ASKED) is Lifecycle.ROLLBACK
    assert deployment.status.message == (
        "rollout of m1 failed (replica r-0: no such file); rolling back to m1"
    )


def test_a_failed_model_is_not_tried_again_by_itself() -> None:
    deployment = a_deployment(desired="m2", candidate="m2", current="m1", stage=ROLLED_BACK)

    assert decide(deployment, NOT_ASKED) is Lifecycle.STEADY
    assert candidate(deployment) == "m2"


@pytest.mark.parametrize("stage", [ROLLED_BACK, ROLLBACK_FAILED])
def test_a_model_that_was_only_taken_back_is_rolled_out_when_it_is_wanted_again(
    stage: "v2.DeploymentStage",
) -> None:
    deployment = a_deployment(desired="m2", candidate="m2", current="m1", stage=stage)
    deployment.metadata.annotations[ROLLBACK_REASON] = DESIRED_CHANGED
    crashed = clone(deployment)

    assert decide(deployment, NOT_ASKED) is Lifecycle.ROLLOUT
    crashed.metadata.CopyFrom(deployment.metadata)
    assert decide(crashed, NOT_ASKED) is Lifecycle.ROLLOUT
    assert crashed == deployment


@pytest.mark.parametrize("stage", [ROLLED_BACK, ROLLBACK_FAILED])
def test_a_user_can_ask_for_the_failed_model_again(stage: "v2.DeploymentStage") -> None:
    deployment = a_deployment(desired="m2", candidate="m2", current="m1", stage=stage)
    deployment.metadata.annotations[RETRY] = "please"

    assert decide(deployment, NOT_ASKED) is Lifecycle.ROLLOUT
    assert deployment.metadata.annotations[STARTED_FOR].endswith("+please")


def test_one_retry_request_counts_once() -> None:
    deployment = a_deployment(desired="m2", candidate="m2", current="m1", stage=ROLLED_BACK)
    deployment.metadata.annotations[RETRY] = "please"
    decide(deployment, NOT_ASKED)
    enter(deployment, ROLLED_BACK)

    assert decide(deployment, NOT_ASKED) is Lifecycle.STEADY


def test_a_second_retry_needs_a_new_text() -> None:
    deployment = a_deployment(desired="m2", candidate="m2", current="m1", stage=ROLLED_BACK)
    deployment.metadata.annotations[RETRY] = "please"
    decide(deployment, NOT_ASKED)
    enter(deployment, ROLLED_BACK)
    deployment.metadata.annotations[RETRY] = "once more"

    assert decide(deployment, NOT_ASKED) is Lifecycle.ROLLOUT


def test_the_end_of_an_earlier_retry_text_is_a_new_text() -> None:
    deployment = a_deployment(desired="m2", candidate="m2", current="m1", stage=ROLLED_BACK)
    deployment.metadata.annotations[RETRY] = "14:00+01:00"
    decide(deployment, NOT_ASKED)
    enter(deployment, ROLLED_BACK)
    deployment.metadata.annotations[RETRY] = "01:00"

    assert decide(deployment, NOT_ASKED) is Lifecycle.ROLLOUT


def test_a_retry_asked_for_during_the_attempt_is_not_used_up_by_it() -> None:
    deployment = a_deployment(desired="m2", candidate="m2", current="m1", stage=ROLLED_BACK)
    deployment.metadata.annotations[RETRY] = "please"
    decide(deployment, NOT_ASKED)
    deployment.metadata.annotations[RETRY] = "once more"
    enter(deployment, ROLLED_BACK)

    assert decide(deployment, NOT_ASKED) is Lifecycle.ROLLOUT


def test_a_retry_survives_a_crash_before_the_status_was_written() -> None:
    deployment = a_deployment(desired="m2", candidate="m2", current="m1", stage=ROLLED_BACK)
    deployment.metadata.annotations[RETRY] = "please"
    crashed = clone(deployment)
    decide(deployment, NOT_ASKED)
    crashed.metadata.CopyFrom(deployment.metadata)

    assert decide(crashed, NOT_ASKED) is Lifecycle.ROLLOUT


def test_a_failed_rollout_of_the_live_model_can_be_asked_for_again() -> None:
    deployment = a_deployment(desired="m1", candidate="m1", current="m1", stage=ROLLBACK_FAILED)
    deployment.metadata.annotations[RETRY] = "please"

    assert decide(deployment, NOT_ASKED) is Lifecycle.ROLLOUT


def test_a_retry_of_a_live_model_does_nothing() -> None:
    deployment = a_deployment(desired="m1", candidate="m1", current="m1", stage=COMPLETE)
    deployment.metadata.annotations[RETRY] = "please"

    assert decide(deployment, NOT_ASKED) is Lifecycle.STEADY


@pytest.mark.parametrize(
    ("stage", "asked"),
    [
        pytest.param(INVALID, False, id="new"),
        pytest.param(VALIDATION, True, id="validation"),
        pytest.param(PLACEMENT, True, id="placement"),
        pytest.param(ROLLING_BACK, False, id="rolling-back"),
        pytest.param(COMPLETE, False, id="complete"),
        pytest.param(FAILED, False, id="failed"),
        pytest.param(CLEANING, False, id="cleaning"),
        pytest.param(CLEAN, False, id="clean"),
    ],
)
def test_the_gate_is_asked_during_a_rollout_only(stage: "v2.DeploymentStage", asked: bool) -> None:
    deployment = a_deployment(desired="m2", candidate="m2", current="m1", stage=stage)

    assert needs_gate(deployment) is asked


def test_the_gate_is_not_asked_once_cleanup_is_wanted() -> None:
    deployment = a_deployment(desired="m2", candidate="m2", current="m1", stage=PLACEMENT)

    assert not needs_gate(changed(deployment, delete))


def test_a_request_names_revision_generation_and_retry() -> None:
    deployment = a_deployment(desired="m2")
    deployment.metadata.generation = 7
    plain = rollout_request(deployment)
    deployment.metadata.annotations[RETRY] = "please"

    assert (plain, rollout_request(deployment)) == ("ns/m2@7", "ns/m2@7+please")
