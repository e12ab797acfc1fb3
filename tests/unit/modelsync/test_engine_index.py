import pytest

from maserve.base.errors import Unavailable
from maserve.base.keys import ModelName
from maserve.modelsync import EngineModel, EngineState, parse_index


def row(state: str = "", reason: str = "") -> dict[str, str]:
    return {"name": "m", "version": "1", "state": state, "reason": reason}


@pytest.mark.parametrize(
    ("rows", "state", "reason"),
    [
        ([{"name": "m"}], EngineState.UNLOADED, ""),
        ([row("READY")], EngineState.READY, ""),
        ([row("LOADING")], EngineState.LOADING, ""),
        ([row("UNLOADING")], EngineState.UNLOADING, ""),
        ([row("UNAVAILABLE")], EngineState.UNLOADED, ""),
        ([row("UNAVAILABLE", "unloaded")], EngineState.UNLOADED, ""),
        ([row("UNAVAILABLE", "boom")], EngineState.FAILED, "boom"),
        ([row("UNAVAILABLE", "boom"), row("READY")], EngineState.READY, ""),
        ([row("LOADING"), row("UNAVAILABLE", "boom")], EngineState.FAILED, "boom"),
        ([row("UNAVAILABLE", "unloaded"), row("LOADING")], EngineState.LOADING, ""),
        ([row("NEW-STATE")], EngineState.UNLOADED, ""),
    ],
)
def test_versions_fold_into_one_state(
    rows: list[dict[str, str]], state: EngineState, reason: str
) -> None:
    assert parse_index(rows) == {ModelName("m"): EngineModel(state=state, reason=reason)}


@pytest.mark.parametrize("rows", [{}, "x", [1], None])
def test_other_shape_is_unavailable(rows: object) -> None:
    with pytest.raises(Unavailable, match="no list of models"):
        parse_index(rows)
