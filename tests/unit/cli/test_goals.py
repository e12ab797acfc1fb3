"""What a wait waits for."""

import pytest

from maserve.base.errors import Invalid
from maserve.cli.goals import parse_goal
from maserve.resource import get_kind

DEPLOYMENT = get_kind("deployment")
SERVER = get_kind("inferenceserver")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("stage=ROLLOUT_COMPLETE", "stage=ROLLOUT_COMPLETE"),
        ("stage=rollout_complete", "stage=ROLLOUT_COMPLETE"),
        ("Stage=rollout-complete", "stage=ROLLOUT_COMPLETE"),
        ("stage=DEPLOYMENT_STAGE_ROLLOUT_COMPLETE", "stage=ROLLOUT_COMPLETE"),
        ("state=healthy", "state=HEALTHY"),
        ("condition=RolloutComplete", "condition=RolloutComplete=TRUE"),
        ("condition=RolloutComplete=false", "condition=RolloutComplete=FALSE"),
        ("delete", "delete"),
    ],
)
def test_goals_are_read_in_any_case(text: str, shown: str) -> None:
    assert str(parse_goal(text, DEPLOYMENT)) == shown


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ready", "must be stage"),
        ("stage=", "must be stage"),
        ("delete=yes", "must be stage"),
        ("stage=DONE", "known: VALIDATION PLACEMENT"),
        ("condition=A=maybe", "TRUE, FALSE or UNKNOWN"),
    ],
)
def test_unknown_goals_name_the_known_ones(text: str, said: str) -> None:
    with pytest.raises(Invalid, match=said):
        parse_goal(text, DEPLOYMENT)


def test_a_kind_without_stages_has_no_stage_to_wait_for() -> None:
    with pytest.raises(Invalid, match="InferenceServer has no stage"):
        parse_goal("stage=PLACEMENT", SERVER)
