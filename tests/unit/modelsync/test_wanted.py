import pytest

from maserve.base.keys import ModelName
from maserve.modelsync.wanted import wanted_on
from maserve.testing.modelsync_rig import REPLICA, an_entry

M = ModelName("m")


@pytest.mark.parametrize(
    ("phase", "pod", "wanted", "serving"),
    [
        ("canary", "r0", True, False),
        ("canary", "r1", False, False),
        ("canary", "", False, False),
        ("staged", "", True, False),
        ("serving", "", True, True),
        ("shadow", "", False, False),
    ],
)
def test_phase_says_where_a_model_belongs(
    phase: str, pod: str, wanted: bool, serving: bool
) -> None:
    models = wanted_on([an_entry("m", "s3://b/m", phase=phase, canary_pod=pod)], REPLICA).models
    assert (M in models, M in models and models[M].serving) == (wanted, serving)


def test_any_entry_keeps_a_model() -> None:
    entries = [
        an_entry("m", "s3://b/m", deployment="d1", phase="canary", canary_pod="r1"),
        an_entry("m", "s3://b/m", deployment="d2", phase="staged"),
    ]
    assert M in wanted_on(entries, REPLICA).models


@pytest.mark.parametrize("phases", [("staged", "serving"), ("serving", "staged")])
def test_any_serving_entry_makes_it_serving(phases: tuple[str, str]) -> None:
    entries = [an_entry("m", "s3://b/m", deployment=f"d-{phase}", phase=phase) for phase in phases]
    assert wanted_on(entries, REPLICA).models[M].serving


def test_first_path_wins_with_a_warning() -> None:
    entries = [an_entry("m", "s3://b/1"), an_entry("m", "s3://b/2", deployment="d2")]
    wanted = wanted_on(entries, REPLICA)
    assert wanted.models[M].storage_path == "s3://b/1"
    assert wanted.warnings == (
        "model m of deployment d2 has another storage path than an earlier entry",
    )


def test_path_of_a_canary_elsewhere_does_not_count_here() -> None:
    entries = [
        an_entry("m", "s3://b/1", phase="canary", canary_pod="r1"),
        an_entry("m", "s3://b/2", deployment="d2"),
    ]
    assert wanted_on(entries, REPLICA).models[M].storage_path == "s3://b/2"


def test_unknown_phase_is_told() -> None:
    warnings = wanted_on([an_entry("m", "s3://b/m", phase="shadow")], REPLICA).warnings
    assert warnings == ("model m of deployment d1 has the unknown phase 'shadow': ignored",)


@pytest.mark.parametrize("name", ["../m", "a/b", ".hidden", "-x", "x" * 201, "a b"])
def test_name_that_cannot_be_a_folder_is_a_fault(name: str) -> None:
    models = wanted_on([an_entry(name, "s3://b/m")], REPLICA).models
    assert "cannot name a model" in models[ModelName(name)].fault
