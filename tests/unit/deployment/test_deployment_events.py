"""What a Deployment's events say (behaviour 5.4, 12)."""

import pytest

from maserve.deployment.events import record_changes
from maserve.testing.builders import a_deployment
from maserve.testing.recorder import FakeRecorder
from maserve.wire import v2

IN_PLACEMENT = v2.DEPLOYMENT_STAGE_PLACEMENT


def events_of(
    old: "v2.DeploymentStage", new: "v2.DeploymentStage", error: str = "", message: str = ""
) -> list[tuple[str, str, str]]:
    recorder, after = FakeRecorder(), a_deployment(stage=new)
    after.status.message = message
    record_changes(recorder, a_deployment(stage=old), after, error)
    return [(event.type, event.reason, event.message) for event in recorder.events]


def test_a_pass_that_changes_no_stage_says_nothing() -> None:
    assert events_of(IN_PLACEMENT, IN_PLACEMENT) == []


def test_a_stage_change_names_both() -> None:
    assert events_of(v2.DEPLOYMENT_STAGE_VALIDATION, IN_PLACEMENT) == [
        (
            "Normal",
            "StageChange",
            "state transition from DEPLOYMENT_STAGE_VALIDATION to DEPLOYMENT_STAGE_PLACEMENT",
        )
    ]


@pytest.mark.parametrize(
    "stage",
    [
        v2.DEPLOYMENT_STAGE_ROLLOUT_FAILED,
        v2.DEPLOYMENT_STAGE_ROLLBACK_FAILED,
        v2.DEPLOYMENT_STAGE_CLEAN_UP_FAILED,
    ],
)
def test_a_failed_stage_ends_early_and_says_why(stage: "v2.DeploymentStage") -> None:
    last = events_of(IN_PLACEMENT, stage, message="replica r-0: no such file")[-1]

    assert last == (
        "Normal",
        "EarlyTermination",
        f"ended early in {v2.DeploymentStage.Name(stage)}: replica r-0: no such file",
    )


def test_an_error_is_a_warning_even_without_a_stage_change() -> None:
    assert events_of(IN_PLACEMENT, IN_PLACEMENT, error="Step: broken") == [
        ("Warning", "ReconciliationError", "Step: broken")
    ]


HEALTHY, UNHEALTHY = v2.DEPLOYMENT_STATE_HEALTHY, v2.DEPLOYMENT_STATE_UNHEALTHY
CLEANING = v2.DEPLOYMENT_STAGE_CLEAN_UP_IN_PROGRESS


def state_events(
    old: "v2.DeploymentState", new: "v2.DeploymentState", *, stage: "v2.DeploymentStage"
) -> list[tuple[str, str, str]]:
    recorder, before, after = FakeRecorder(), a_deployment(stage=stage), a_deployment(stage=stage)
    before.status.state, after.status.state = old, new
    after.status.message = "Unhealthy: cluster c1: gone"
    record_changes(recorder, before, after, "")
    return [(event.type, event.reason, event.message) for event in recorder.events]


def test_an_outage_is_a_warning_with_its_reason() -> None:
    assert state_events(HEALTHY, UNHEALTHY, stage=IN_PLACEMENT) == [
        (
            "Warning",
            "StateChange",
            "DEPLOYMENT_STATE_HEALTHY to DEPLOYMENT_STATE_UNHEALTHY: Unhealthy: cluster c1: gone",
        )
    ]


def test_an_outage_on_purpose_is_no_warning() -> None:
    (event,) = state_events(HEALTHY, UNHEALTHY, stage=CLEANING)
    assert event[0] == "Normal"


def test_an_outage_that_goes_on_is_not_told_again() -> None:
    assert state_events(UNHEALTHY, UNHEALTHY, stage=IN_PLACEMENT) == []
