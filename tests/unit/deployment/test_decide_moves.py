"""What a pass does with a Deployment that is pointed at another server (ADR 0016)."""

from maserve.deployment.decide import Gate, Lifecycle, decide
from maserve.deployment.stages import enter_stage
from maserve.resource.annotations import CANDIDATE_SERVER, PLACED_ON, ROLLOUT_COUNT
from maserve.resource.metadata import clone
from maserve.testing.builders import a_deployment, place
from maserve.wire import v2

VALIDATION = v2.DEPLOYMENT_STAGE_VALIDATION
PLACEMENT = v2.DEPLOYMENT_STAGE_PLACEMENT
COMPLETE = v2.DEPLOYMENT_STAGE_ROLLOUT_COMPLETE
FAILED = v2.DEPLOYMENT_STAGE_ROLLOUT_FAILED
ROLLED_BACK = v2.DEPLOYMENT_STAGE_ROLLBACK_COMPLETE

NOT_ASKED = Gate()
HEALTHY = Gate(asked=True, healthy=True)
ILL = Gate(asked=True, healthy=False)


def point(deployment: v2.Deployment, server: str) -> v2.Deployment:
    """Point it at another server, as an update does."""
    deployment.spec.inference_server.name = server
    deployment.metadata.generation += 1
    return deployment


def at_rest() -> v2.Deployment:
    """Build a Deployment whose first rollout is complete."""
    deployment = a_deployment(desired="m1")
    decide(deployment, NOT_ASKED)
    place(deployment, ["c1"], server="is")
    enter(deployment, COMPLETE)
    return deployment


def enter(deployment: v2.Deployment, stage: "v2.DeploymentStage") -> None:
    deployment.status.stage = stage
    enter_stage(deployment)


def test_a_move_is_a_rollout_and_keeps_where_it_is_served() -> None:
    deployment = point(at_rest(), "elsewhere")

    assert decide(deployment, NOT_ASKED) is Lifecycle.ROLLOUT
    assert deployment.status.stage == VALIDATION
    assert deployment.metadata.annotations[CANDIDATE_SERVER] == "elsewhere"
    assert deployment.metadata.annotations[PLACED_ON] == "is"
    assert deployment.metadata.annotations[ROLLOUT_COUNT] == "1"


def test_a_move_of_which_only_the_metadata_was_written_begins_again_and_counts_once() -> None:
    deployment = point(at_rest(), "elsewhere")
    before = clone(deployment)
    decide(deployment, NOT_ASKED)
    before.metadata.CopyFrom(deployment.metadata)

    assert decide(before, NOT_ASKED) is Lifecycle.ROLLOUT
    assert before.metadata.annotations[ROLLOUT_COUNT] == "1"


def test_a_failing_gate_brings_a_move_back() -> None:
    deployment = point(at_rest(), "elsewhere")
    decide(deployment, NOT_ASKED)

    assert decide(deployment, ILL) is Lifecycle.ROLLBACK
    assert deployment.status.message == (
        "health gate failed while rolling out m1 on server elsewhere; "
        "rolling back to m1 on server is"
    )


def test_another_server_in_the_middle_of_a_rollout_rolls_back_first() -> None:
    deployment = a_deployment(
        desired="m2", candidate="m2", current="m1", stage=PLACEMENT, placed=["c1"]
    )
    deployment.metadata.annotations[CANDIDATE_SERVER] = "is"

    assert decide(point(deployment, "elsewhere"), HEALTHY) is Lifecycle.ROLLBACK
    assert deployment.status.message == (
        "desired model changed from m2 on server is to m2 on server elsewhere; rolling back first"
    )


def test_a_move_that_failed_is_not_tried_again_by_itself() -> None:
    deployment = point(at_rest(), "elsewhere")
    decide(deployment, NOT_ASKED)
    enter(deployment, FAILED)
    assert decide(deployment, NOT_ASKED) is Lifecycle.ROLLBACK
    enter(deployment, ROLLED_BACK)

    assert decide(deployment, NOT_ASKED) is Lifecycle.STEADY
    assert deployment.metadata.annotations[PLACED_ON] == "is"


def test_the_old_server_again_after_a_move_that_failed_is_at_rest() -> None:
    deployment = point(at_rest(), "elsewhere")
    decide(deployment, NOT_ASKED)
    enter(deployment, ROLLED_BACK)
    point(deployment, "is")

    assert decide(deployment, NOT_ASKED) is Lifecycle.STEADY
    assert deployment.metadata.annotations[CANDIDATE_SERVER] == "is"


def test_another_server_after_a_first_rollout_that_found_none_is_tried() -> None:
    deployment = a_deployment(desired="m1")
    decide(deployment, NOT_ASKED)
    enter(deployment, ROLLED_BACK)
    point(deployment, "right")

    assert decide(deployment, NOT_ASKED) is Lifecycle.ROLLOUT
