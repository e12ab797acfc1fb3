"""Ages, short names and reasons, as people read them."""

from datetime import UTC, datetime

import pytest

from maserve.cli.fields import age, condition_status, conditions_of, progress, status_value, why
from maserve.wire import api, meta, v2

NOW = datetime(2030, 1, 10, tzinfo=UTC)
START = int(NOW.timestamp())


@pytest.mark.parametrize(
    ("passed", "shown"),
    [
        (0, "0s"),
        (-5, "0s"),
        (119, "119s"),
        (120, "2m"),
        (7199, "119m"),
        (7200, "2h"),
        (172800, "2d"),
    ],
)
def test_ages_have_one_unit(passed: int, shown: str) -> None:
    assert age(START - passed, NOW) == shown


def test_an_unset_time_has_no_age() -> None:
    assert age(0, NOW) == "-"


@pytest.mark.parametrize("status", ["UNKNOWN", "TRUE", "FALSE"])
def test_condition_status_is_short(status: str) -> None:
    assert condition_status(api.Condition(status=f"CONDITION_STATUS_{status}")) == status


def test_status_enums_are_short_and_empty_when_unset() -> None:
    server = v2.InferenceServer()
    assert status_value(server, "state") == ""
    server.status.state = v2.INFERENCE_SERVER_STATE_SERVING
    assert status_value(server, "state") == "SERVING"
    assert status_value(v2.Model(), "state") == ""


def test_conditions_are_found_under_both_names() -> None:
    condition = api.Condition(type="Ready")
    cluster = v2.Cluster(status=v2.ClusterStatus(status_conditions=[condition]))
    assert [each.type for each in conditions_of(cluster)] == ["Ready"]
    assert conditions_of(v2.Model()) == ()


def test_the_reason_is_the_failed_condition_before_the_unfinished_one() -> None:
    deployment = v2.Deployment(
        status=v2.DeploymentStatus(
            stage=v2.DEPLOYMENT_STAGE_PLACEMENT,
            conditions=[
                api.Condition(type="A", status="CONDITION_STATUS_TRUE"),
                api.Condition(type="B", status="CONDITION_STATUS_UNKNOWN"),
                api.Condition(
                    type="C", status="CONDITION_STATUS_FALSE", reason="Bad", message="no file"
                ),
            ],
        )
    )
    assert progress(deployment) == "PLACEMENT  C FALSE Bad: no file"


def test_what_the_message_says_already_is_not_said_twice() -> None:
    held = api.Condition(type="StateSteady", reason="NotServing", message="cluster c1: gone")
    deployment = v2.Deployment(status=v2.DeploymentStatus(conditions=[held]))
    assert why(deployment) == "StateSteady UNKNOWN NotServing: cluster c1: gone"
    deployment.status.message = "Unhealthy: cluster c1: gone"
    assert why(deployment) == "Unhealthy: cluster c1: gone"


def test_a_new_object_has_no_status_yet() -> None:
    assert progress(v2.InferenceServer()) == "no status yet"


def test_a_deployment_that_wants_no_model_says_so() -> None:
    deployment = v2.Deployment(status=v2.DeploymentStatus(state=v2.DEPLOYMENT_STATE_INITIALIZING))
    assert why(deployment) == (
        "spec.desiredRevision names no Model, so there is nothing to roll out"
    )
    deployment.spec.desired_revision.name = "m1"
    assert why(deployment) == ""


def test_a_deletion_is_part_of_the_reason() -> None:
    server = v2.InferenceServer(
        metadata=meta.ObjectMeta(deletionTimestamp=meta.Time(seconds=START)),
        status=v2.InferenceServerStatus(conditions=[api.Condition(type="Cleanup")]),
    )
    assert why(server) == "is being deleted; Cleanup UNKNOWN"
