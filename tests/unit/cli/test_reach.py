"""How an object stands to what a wait waits for."""

import pytest

from maserve.cli.goals import parse_goal
from maserve.cli.reach import dead_end, is_met
from maserve.resource import get_kind
from maserve.resource.annotations import (
    FINISHED_FOR,
    PLACED_ON,
    RETRY,
)
from maserve.wire import api, meta, v2

DEPLOYMENT = get_kind("deployment")
SERVER = get_kind("inferenceserver")


def a_deployment(
    stage: str = "INVALID", *, desired: str = "m1", candidate: str = "m1"
) -> v2.Deployment:
    return v2.Deployment(
        metadata=meta.ObjectMeta(name="d", namespace="ns"),
        spec=v2.DeploymentSpec(desired_revision=api.ResourceIdentifier(name=desired)),
        status=v2.DeploymentStatus(
            stage=f"DEPLOYMENT_STAGE_{stage}",
            candidate_revision=api.ResourceIdentifier(name=candidate),
        ),
    )


def a_server(state: str, *, generation: int = 1, observed: int = 1) -> v2.InferenceServer:
    return v2.InferenceServer(
        metadata=meta.ObjectMeta(name="s", namespace="ns", generation=generation),
        status=v2.InferenceServerStatus(
            state=f"INFERENCE_SERVER_STATE_{state}", observed_generation=observed
        ),
    )


def test_the_stage_of_an_earlier_rollout_does_not_count() -> None:
    goal = parse_goal("stage=ROLLOUT_COMPLETE", DEPLOYMENT)
    assert not is_met(goal, a_deployment("ROLLOUT_COMPLETE", desired="m2", candidate="m1"))
    assert is_met(goal, a_deployment("ROLLOUT_COMPLETE", desired="m2", candidate="m2"))


def test_the_failure_of_an_earlier_rollout_is_no_dead_end() -> None:
    goal = parse_goal("stage=ROLLOUT_COMPLETE", DEPLOYMENT)
    assert dead_end(goal, a_deployment("ROLLBACK_COMPLETE", desired="m3", candidate="m2")) == ""


def test_a_state_counts_only_for_the_generation_it_was_observed_at() -> None:
    goal = parse_goal("state=SERVING", SERVER)
    assert not is_met(goal, a_server("SERVING", generation=2, observed=1))
    assert is_met(goal, a_server("SERVING", generation=2, observed=2))


def test_conditions_are_found_by_type_in_any_case() -> None:
    server = a_server("CREATING")
    server.status.conditions.append(
        api.Condition(type="Validation", status="CONDITION_STATUS_TRUE")
    )
    assert is_met(parse_goal("condition=validation", SERVER), server)
    assert not is_met(parse_goal("condition=validation=UNKNOWN", SERVER), server)


@pytest.mark.parametrize(
    ("goal", "stage", "ends"),
    [
        ("stage=ROLLOUT_COMPLETE", "PLACEMENT", False),
        ("stage=ROLLOUT_COMPLETE", "ROLLOUT_FAILED", True),
        ("stage=ROLLOUT_COMPLETE", "ROLLBACK_IN_PROGRESS", False),
        ("stage=ROLLOUT_COMPLETE", "ROLLBACK_COMPLETE", True),
        ("stage=ROLLOUT_COMPLETE", "ROLLBACK_FAILED", True),
        ("stage=ROLLOUT_COMPLETE", "CLEAN_UP_COMPLETE", True),
        ("stage=ROLLBACK_COMPLETE", "ROLLOUT_FAILED", False),
        ("stage=ROLLBACK_COMPLETE", "ROLLBACK_FAILED", True),
        ("stage=CLEAN_UP_COMPLETE", "ROLLBACK_COMPLETE", False),
        ("condition=RollbackComplete", "ROLLOUT_FAILED", False),
        ("condition=RolloutComplete", "ROLLOUT_FAILED", True),
        ("state=HEALTHY", "ROLLOUT_FAILED", False),
        ("state=HEALTHY", "ROLLBACK_COMPLETE", True),
        ("delete", "CLEAN_UP_FAILED", False),
    ],
)
def test_stages_that_lead_nowhere_end_the_wait(goal: str, stage: str, ends: bool) -> None:
    assert bool(dead_end(parse_goal(goal, DEPLOYMENT), a_deployment(stage))) is ends


def test_a_rolled_back_deployment_may_become_healthy_again() -> None:
    deployment = a_deployment("ROLLBACK_COMPLETE")
    deployment.status.current_revision.name = "m0"
    assert dead_end(parse_goal("state=HEALTHY", DEPLOYMENT), deployment) == ""


def test_a_dead_end_says_why() -> None:
    deployment = a_deployment("ROLLBACK_COMPLETE")
    deployment.status.message = "Rollout of m1 failed: no such file"
    reason = dead_end(parse_goal("stage=ROLLOUT_COMPLETE", DEPLOYMENT), deployment)
    assert reason == "stage is ROLLBACK_COMPLETE: Rollout of m1 failed: no such file"


def test_a_failed_server_does_not_become_serving_by_waiting() -> None:
    reason = dead_end(parse_goal("state=SERVING", SERVER), a_server("FAILED"))
    assert reason == "state is FAILED: no reason given"


def test_a_condition_counts_only_for_the_generation_it_was_observed_at() -> None:
    goal = parse_goal("condition=Validation", SERVER)
    server = a_server("SERVING", generation=2, observed=1)
    server.status.conditions.append(
        api.Condition(type="Validation", status="CONDITION_STATUS_TRUE")
    )
    assert not is_met(goal, server)


def a_failed_rollout(*, retry: str, finished: str) -> v2.Deployment:
    deployment = a_deployment("ROLLBACK_COMPLETE")
    deployment.metadata.annotations[RETRY] = retry
    deployment.metadata.annotations[FINISHED_FOR] = finished
    return deployment


def test_a_retry_that_nobody_has_seen_yet_is_no_dead_end() -> None:
    goal = parse_goal("stage=ROLLOUT_COMPLETE", DEPLOYMENT)
    assert dead_end(goal, a_failed_rollout(retry="2", finished="/m1@1")) == ""
    assert dead_end(goal, a_failed_rollout(retry="2", finished="/m1@1+1")) == ""
    assert dead_end(goal, a_failed_rollout(retry="2", finished="/m1@1+1+2")) == ""
    assert dead_end(goal, a_failed_rollout(retry="2", finished="/m1@1+2"))


def test_a_retry_changes_nothing_where_the_revision_is_live() -> None:
    deployment = a_failed_rollout(retry="2", finished="/m1@1")
    deployment.status.current_revision.name = "m1"
    deployment.status.state = v2.DEPLOYMENT_STATE_HEALTHY
    assert is_met(parse_goal("state=HEALTHY", DEPLOYMENT), deployment)


def test_a_deployment_that_is_to_move_is_not_complete_where_it_was() -> None:
    goal = parse_goal("stage=ROLLOUT_COMPLETE", DEPLOYMENT)
    deployment = a_deployment("ROLLOUT_COMPLETE")
    deployment.spec.inference_server.name = "new"
    deployment.metadata.annotations[PLACED_ON] = "old"
    assert not is_met(goal, deployment)
    deployment.metadata.annotations[PLACED_ON] = "new"
    assert is_met(goal, deployment)


def test_a_model_of_another_namespace_is_another_revision() -> None:
    deployment = a_deployment("ROLLOUT_COMPLETE")
    deployment.spec.desired_revision.namespace = "other"
    assert not is_met(parse_goal("stage=ROLLOUT_COMPLETE", DEPLOYMENT), deployment)


def test_a_decommissioned_deployment_is_cleaned_up_and_comes_back_to_nothing() -> None:
    deployment = a_deployment("ROLLOUT_COMPLETE")
    deployment.spec.deletion_spec.deleted = True
    live = parse_goal("stage=ROLLOUT_COMPLETE", DEPLOYMENT)
    assert not is_met(live, deployment)
    gone = a_deployment("CLEAN_UP_COMPLETE", candidate="")
    gone.spec.deletion_spec.deleted = True
    assert is_met(parse_goal("stage=CLEAN_UP_COMPLETE", DEPLOYMENT), gone)
    assert dead_end(live, gone).startswith("stage is CLEAN_UP_COMPLETE")


@pytest.mark.parametrize(
    ("goal", "stage"),
    [
        ("condition=RolloutComplete", "ROLLOUT_COMPLETE"),
        ("condition=rollbackcomplete", "ROLLBACK_COMPLETE"),
        ("condition=CleanupComplete", "CLEAN_UP_COMPLETE"),
    ],
)
def test_the_last_condition_is_met_by_the_stage_it_leads_to(goal: str, stage: str) -> None:
    assert is_met(parse_goal(goal, DEPLOYMENT), a_deployment(stage))
    assert not is_met(parse_goal(goal, DEPLOYMENT), a_deployment(stage, desired="m2"))
    assert not is_met(parse_goal(f"{goal}=FALSE", DEPLOYMENT), a_deployment(stage))


def test_the_conditions_of_a_rollout_that_is_over_are_not_waited_for() -> None:
    deployment = a_deployment("ROLLOUT_COMPLETE")
    goal = parse_goal("condition=Validated", DEPLOYMENT)
    assert dead_end(goal, deployment) == ""
    deployment.status.conditions.append(
        api.Condition(type="StateSteady", status="CONDITION_STATUS_FALSE")
    )
    assert dead_end(goal, deployment).endswith("it has: StateSteady")
    assert dead_end(parse_goal("condition=StateSteady", DEPLOYMENT), deployment) == ""


@pytest.mark.parametrize(
    ("goal", "stage", "met"),
    [
        ("condition=SoakComplete-c1", "ROLLOUT_COMPLETE", True),
        ("condition=SoakComplete-c1=FALSE", "ROLLOUT_COMPLETE", False),
        ("condition=SoakComplete-c1", "PLACEMENT", False),
        ("condition=SoakComplete-c1", "ROLLBACK_IN_PROGRESS", False),
        ("condition=SoakComplete-c1", "ROLLBACK_COMPLETE", False),
        ("condition=RollbackComplete-c1", "ROLLBACK_COMPLETE", True),
        ("condition=RollbackComplete-c1", "ROLLOUT_COMPLETE", False),
    ],
)
def test_what_is_kept_of_a_rollout_counts_for_the_stage_it_made(
    goal: str, stage: str, met: bool
) -> None:
    deployment = a_deployment(stage)
    deployment.status.conditions.append(api.Condition(type="StateSteady"))
    deployment.status.conditions_snapshot.extend(
        api.Condition(type=type_, status="CONDITION_STATUS_TRUE")
        for type_ in ("SoakComplete-c1", "RollbackComplete-c1")
    )
    assert is_met(parse_goal(goal, DEPLOYMENT), deployment) is met


def test_a_deployment_that_wants_nothing_does_not_become_complete() -> None:
    goal = parse_goal("stage=ROLLOUT_COMPLETE", DEPLOYMENT)
    assert "names no Model" in dead_end(goal, a_deployment(desired="", candidate=""))


def test_a_rollback_under_way_is_seen_while_another_model_is_wanted() -> None:
    deployment = a_deployment("ROLLBACK_IN_PROGRESS", desired="m2")
    deployment.status.conditions.append(
        api.Condition(type="RollbackComplete-c1", status="CONDITION_STATUS_TRUE")
    )
    assert is_met(parse_goal("condition=RollbackComplete-c1", DEPLOYMENT), deployment)


@pytest.mark.parametrize("goal", ["stage=ROLLOUT_COMPLETE", "condition=RolloutComplete"])
def test_the_wish_that_is_live_since_the_rollback_is_fulfilled_once_it_is_healthy(
    goal: str,
) -> None:
    wanted = parse_goal(goal, DEPLOYMENT)
    deployment = a_deployment("ROLLBACK_COMPLETE")
    deployment.status.current_revision.name = "m1"
    deployment.status.state = v2.DEPLOYMENT_STATE_UNHEALTHY
    assert not is_met(wanted, deployment)
    assert dead_end(wanted, deployment) == ""
    deployment.status.state = v2.DEPLOYMENT_STATE_HEALTHY
    assert is_met(wanted, deployment)
    assert is_met(parse_goal("stage=ROLLBACK_COMPLETE", DEPLOYMENT), deployment)


def test_a_wish_that_was_undone_is_not_fulfilled_by_what_is_live_instead() -> None:
    goal = parse_goal("stage=ROLLOUT_COMPLETE", DEPLOYMENT)
    deployment = a_deployment("ROLLBACK_COMPLETE", desired="m2", candidate="m2")
    deployment.status.current_revision.name = "m1"
    deployment.status.state = v2.DEPLOYMENT_STATE_HEALTHY
    assert not is_met(goal, deployment)
    assert dead_end(goal, deployment).startswith("stage is ROLLBACK_COMPLETE")
