import json

import pytest

from maserve.backends import LoadState
from maserve.backends.triton import IndexRow, is_moving, model_state, parse_index
from maserve.base.errors import Unavailable
from maserve.base.keys import ModelName

MODEL = ModelName("m1")


def row(state: str, reason: str = "", version: str = "1") -> IndexRow:
    return IndexRow(name="m1", version=version, state=state, reason=reason)


@pytest.mark.parametrize(
    ("rows", "state", "reason"),
    [
        pytest.param([], LoadState.LOADING, "model not in repository", id="not listed"),
        pytest.param([row("")], LoadState.LOADING, "model not yet loaded", id="no state"),
        pytest.param([row("READY")], LoadState.READY, "", id="ready"),
        pytest.param([row("LOADING")], LoadState.LOADING, "loading", id="loading"),
        pytest.param([row("UNLOADING")], LoadState.LOADING, "unloading", id="unloading"),
        pytest.param([row("UNAVAILABLE")], LoadState.LOADING, "unloaded", id="no reason"),
        pytest.param(
            [row("UNAVAILABLE", "unloaded")], LoadState.LOADING, "unloaded", id="unloaded"
        ),
        pytest.param([row("UNAVAILABLE", "bang")], LoadState.FAILED, "bang", id="failed"),
        pytest.param([row("ODD")], LoadState.LOADING, "unknown state ODD", id="unknown state"),
        pytest.param(
            [row("UNAVAILABLE", "bang"), row("READY", version="2")],
            LoadState.READY,
            "",
            id="ready beats failed",
        ),
        pytest.param(
            [row("LOADING"), row("UNAVAILABLE", "bang", version="2")],
            LoadState.FAILED,
            "bang",
            id="failed beats loading",
        ),
        pytest.param(
            [IndexRow(name="m2", state="READY")],
            LoadState.LOADING,
            "model not in repository",
            id="another model",
        ),
    ],
)
def test_state_of_a_model(rows: list[IndexRow], state: LoadState, reason: str) -> None:
    assert model_state(rows, MODEL) == (state, reason)


def test_index_is_parsed_in_order() -> None:
    body = json.dumps([{"name": "b"}, {"name": "a", "version": "1", "state": "READY"}]).encode()

    assert parse_index(body) == (
        IndexRow(name="a", version="1", state="READY"),
        IndexRow(name="b"),
    )


@pytest.mark.parametrize("body", [b"<html>", b"{}", b'[{"state": "READY"}]', b"[1]"])
def test_answer_that_is_no_index_is_unavailable(body: bytes) -> None:
    with pytest.raises(Unavailable, match="repository index"):
        parse_index(body)


@pytest.mark.parametrize(
    ("state", "moving"), [("LOADING", True), ("UNLOADING", True), ("READY", False), ("", False)]
)
def test_moving_is_loading_or_unloading(state: str, moving: bool) -> None:
    assert is_moving([row(state)]) is moving
