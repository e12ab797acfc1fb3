"""What model-sync says of a model, merged into what the engine's index says."""

import json
from dataclasses import replace
from typing import Any

import pytest

from maserve.backends import LoadState
from maserve.backends.triton.local.syncstatus import (
    SyncStatus,
    merge,
    parse_sync_status,
    plain_reason,
)
from maserve.base.keys import ModelName

MODEL = ModelName("m1")
LISTED = (1, 2, 3, 4)
MIB = 1 << 20

ABSENT = (LoadState.LOADING, "model not in repository")
READY = (LoadState.READY, "")
BROKEN = (LoadState.FAILED, "bang")
STAND_IN = (
    "Invalid argument: unable to find backend library for backend 'model-sync: the folder "
    "file:///models/m1/ is 'empty'', try specifying runtime on the model configuration."
)


def said(problem: str = "", **row: Any) -> SyncStatus:
    """Return the status of a model-sync that has one row, or none."""
    value = {"models": {"m1": row} if row else {}, "problem": problem, "list": LISTED}
    status = parse_sync_status(json.dumps(value).encode(), LISTED)
    assert status is not None
    return status


def merged(indexed: tuple[LoadState, str], status: SyncStatus | None) -> tuple[LoadState, str]:
    return merge(indexed, status, MODEL)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        pytest.param(
            {"state": "DOWNLOADING", "bytes_done": 12 * MIB + 5, "bytes_total": 340 * MIB},
            "downloading, 12 of 340 MiB",
            id="downloading",
        ),
        pytest.param(
            {"state": "DOWNLOADING", "bytes_done": 3000},
            "downloading, 2 KiB",
            id="downloading what has no known size",
        ),
        pytest.param(
            {"state": "DOWNLOADING", "bytes_total": 700},
            "downloading, 0 of 700 bytes",
            id="downloading something small",
        ),
        pytest.param(
            {"state": "DOWNLOADING", "bytes_total": 2 * MIB, "reason": "timed out"},
            "downloading, 0 of 2 MiB; before: timed out",
            id="downloading again",
        ),
        pytest.param(
            {"state": "DOWNLOAD_FAILED", "reason": "timed out"},
            "download failed, it is tried again: timed out",
            id="failed download that may work next time",
        ),
        pytest.param(
            {"state": "VERIFY_FAILED", "reason": "cut off"},
            "failed, it is tried again: cut off",
            id="failed check that may work next time",
        ),
        pytest.param({"state": "LOADING"}, "loading", id="loading"),
        pytest.param(
            {"state": "LOADING", "reason": "an earlier unload is still going on"},
            "loading: an earlier unload is still going on",
            id="waiting to load",
        ),
        pytest.param(
            {"state": "UNLOADING"}, "an earlier unload is still going on", id="still unloading"
        ),
        pytest.param({"state": "LOADED"}, "model not in repository", id="engine started anew"),
        pytest.param({"state": "ODD"}, "model not in repository", id="state of a newer version"),
    ],
)
def test_what_model_sync_works_at_is_loading(row: dict[str, Any], reason: str) -> None:
    assert merged(ABSENT, said(**row)) == (LoadState.LOADING, reason)


@pytest.mark.parametrize("state", ["DOWNLOAD_FAILED", "VERIFY_FAILED", "LOAD_FAILED"])
@pytest.mark.parametrize("indexed", [ABSENT, BROKEN, (LoadState.FAILED, STAND_IN)], ids=str)
def test_a_permanent_failure_is_failed_with_its_plain_reason(
    state: str, indexed: tuple[LoadState, str]
) -> None:
    status = said(state=state, permanent=True, reason="artifact x not found")

    assert merged(indexed, status) == (LoadState.FAILED, "artifact x not found")


@pytest.mark.parametrize(
    "row",
    [{"state": "DOWNLOADING"}, {"state": "LOADING"}, {"state": "UNLOADING"}],
    ids=lambda row: str(row["state"]),
)
def test_a_failure_in_the_index_is_past_while_model_sync_is_at_it(row: dict[str, Any]) -> None:
    assert merged(BROKEN, said(**row))[0] is LoadState.LOADING


def test_a_failure_in_the_index_of_what_model_sync_has_not_seen_is_past() -> None:
    assert merged(BROKEN, said()) == (LoadState.LOADING, "model-sync has not seen it yet")


def test_a_model_config_that_cannot_be_read_is_told() -> None:
    status = said("model-list.json is not JSON")

    assert merged(ABSENT, status) == (LoadState.LOADING, "model-sync: model-list.json is not JSON")


def test_ready_is_the_engines_word() -> None:
    status = said(state="LOAD_FAILED", permanent=True, reason="the earlier content keeps serving")

    assert merged(READY, status) == READY


@pytest.mark.parametrize("indexed", [ABSENT, READY, BROKEN], ids=str)
def test_without_a_file_the_index_is_all_there_is(indexed: tuple[LoadState, str]) -> None:
    assert merged(indexed, None) == indexed


def test_a_failure_counts_once_the_config_as_it_is_was_read() -> None:
    status = said(state="VERIFY_FAILED", permanent=True, reason="it is empty")
    before = replace(status, is_outdated=True)

    assert merged(BROKEN, before) == (
        LoadState.LOADING,
        "model-sync has not read the changed model config yet",
    )
    assert merged(BROKEN, status) == (LoadState.FAILED, "it is empty")


def test_status_about_another_config_is_outdated() -> None:
    data = json.dumps({"models": {}, "list": LISTED}).encode()
    assert [
        found.is_outdated
        for listed in (LISTED, (1, 2, 3, 5), ())
        if (found := parse_sync_status(data, listed)) is not None
    ] == [False, True, True]


@pytest.mark.parametrize(
    ("reason", "plain"),
    [
        (STAND_IN, "the folder file:///models/m1/ is 'empty'"),
        ("no library for backend 'model-sync: it is empty'", "it is empty"),
        ("unable to find backend library for backend 'odd', try specifying", None),
    ],
)
def test_the_engines_wrapper_is_taken_off(reason: str, plain: str | None) -> None:
    assert plain_reason(reason) == (plain or reason)


@pytest.mark.parametrize("data", [None, b"", b"{", b"[]", b"{}", b'{"models": []}'])
def test_a_file_that_nobody_can_read_says_nothing(data: bytes | None) -> None:
    assert parse_sync_status(data, LISTED) is None


def test_odd_values_in_a_row_are_passed_over() -> None:
    row: dict[str, Any] = {
        "state": "DOWNLOADING",
        "bytes_done": "x",
        "bytes_total": -1,
        "since": "yesterday",
    }

    assert merged(ABSENT, said(**row)) == (LoadState.LOADING, "downloading, 0 bytes")


@pytest.mark.parametrize(
    ("state", "moving"), [("DOWNLOADING", True), ("LOADING", True), ("LOADED", False)]
)
def test_moving_is_what_will_end_by_itself(state: str, moving: bool) -> None:
    assert said(state=state).is_moving() is moving
