"""Changing one condition: status, reason, message, time and progress record."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maserve.conditions import (
    FALSE,
    TRUE,
    UNKNOWN,
    Progress,
    false_condition,
    find_condition,
    first_unmet,
    put_condition,
    read_progress,
    true_condition,
    unknown_condition,
    write_progress,
)
from maserve.testing.builders import a_condition, a_deployment
from maserve.wire import api, wkt

SECONDS = st.floats(min_value=0, max_value=4e9)
PROGRESS = st.builds(
    Progress,
    started_at=SECONDS,
    completed_at=SECONDS,
    done=st.booleans(),
    replica=st.text(max_size=20),
    seen_at=SECONDS,
    passed_s=SECONDS,
    missed_s=SECONDS,
    held=st.booleans(),
    source=st.text(max_size=20),
)


def test_true_clears_message_and_reason() -> None:
    condition = true_condition(a_condition(reason="Waiting", message="a while"), 100.9)

    assert condition == api.Condition(type="Step", status=TRUE, last_updated_timestamp=100)


def test_true_may_say_why_there_was_nothing_to_do() -> None:
    condition = true_condition(a_condition(), 100.0, message="left out", reason="Skipped")

    assert (condition.status, condition.reason, condition.message) == (TRUE, "Skipped", "left out")


@pytest.mark.parametrize(
    ("helper", "status"),
    [
        pytest.param(unknown_condition, UNKNOWN, id="unknown"),
        pytest.param(false_condition, FALSE, id="false"),
    ],
)
def test_the_sentence_goes_to_message_and_the_token_to_reason(
    helper: Callable[[api.Condition, str, str, float], api.Condition],
    status: "api.ConditionStatus",
) -> None:
    condition = helper(a_condition(), "the replica is gone", "ReplicaGone", 7.0)

    assert (condition.status, condition.message, condition.reason) == (
        status,
        "the replica is gone",
        "ReplicaGone",
    )


@pytest.mark.parametrize(
    ("message", "reason", "stamp"),
    [
        pytest.param("same", "Same", 100, id="nothing-changed"),
        pytest.param("other", "Same", 200, id="message-changed"),
        pytest.param("same", "Other", 200, id="reason-changed"),
    ],
)
def test_the_timestamp_moves_only_on_a_change(message: str, reason: str, stamp: int) -> None:
    condition = unknown_condition(a_condition(), "same", "Same", 100.0)

    changed = unknown_condition(condition, message, reason, 200.0)

    assert changed.last_updated_timestamp == stamp


def test_the_timestamp_moves_when_the_status_changes() -> None:
    condition = unknown_condition(a_condition(), "same", "Same", 100.0)

    assert false_condition(condition, "same", "Same", 200.0).last_updated_timestamp == 200


def test_a_condition_that_was_never_stamped_gets_its_time() -> None:
    assert true_condition(a_condition(status=TRUE), 100.0).last_updated_timestamp == 100


def test_the_record_survives_a_change_of_status() -> None:
    condition = a_condition()
    write_progress(condition, Progress(started_at=5.0))

    assert read_progress(true_condition(condition, 9.0)) == Progress(started_at=5.0)


@given(PROGRESS)
def test_a_progress_record_reads_back_as_it_was_written(progress: Progress) -> None:
    condition = a_condition()

    write_progress(condition, progress)

    assert read_progress(condition) == progress


def test_the_record_is_json_with_only_what_is_set() -> None:
    condition = a_condition()

    write_progress(condition, Progress(started_at=5.0, replica="r-0"))

    text = wkt.StringValue()
    assert condition.metadata.Unpack(text)
    assert text.value == '{"replica": "r-0", "startedAt": 5.0}'


def test_writing_an_equal_record_changes_no_byte() -> None:
    condition = a_condition()
    condition.metadata.Pack(wkt.StringValue(value='{"startedAt":5,"foreign":1}'))
    before = condition.metadata.value

    write_progress(condition, Progress(started_at=5.0))

    assert condition.metadata.value == before


def test_a_new_record_is_written_over_the_old_one() -> None:
    condition = a_condition()
    write_progress(condition, Progress(started_at=5.0))

    write_progress(condition, Progress(started_at=5.0, done=True))

    assert read_progress(condition) == Progress(started_at=5.0, done=True)


@pytest.mark.parametrize("flag", [True, False])
def test_an_older_controllers_flag_counts_as_done(flag: bool) -> None:
    condition = a_condition()
    condition.metadata.Pack(wkt.BoolValue(value=flag))

    assert read_progress(condition) == Progress(done=flag)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("{", id="no-json"),
        pytest.param("[]", id="no-object"),
        pytest.param('"text"', id="a-text"),
        pytest.param('{"startedAt":"soon"}', id="no-number"),
        pytest.param('{"startedAt":[1]}', id="a-list-for-a-number"),
    ],
)
def test_a_damaged_record_is_an_empty_one(text: str) -> None:
    condition = a_condition()
    condition.metadata.Pack(wkt.StringValue(value=text))

    assert read_progress(condition) == Progress()


def test_a_foreign_message_is_an_empty_record() -> None:
    condition = a_condition()
    condition.metadata.Pack(wkt.Duration(seconds=3))

    assert read_progress(condition) == Progress()


def test_no_record_is_an_empty_record() -> None:
    assert read_progress(a_condition()) == Progress()


def test_put_replaces_in_place_and_appends_what_is_new() -> None:
    conditions = a_deployment().status.conditions
    put_condition(conditions, a_condition("A"))
    put_condition(conditions, a_condition("B"))

    put_condition(conditions, a_condition("A", TRUE))

    assert [(c.type, c.status) for c in conditions] == [("A", TRUE), ("B", UNKNOWN)]


def test_putting_the_stored_condition_itself_is_harmless() -> None:
    conditions = a_deployment().status.conditions
    put_condition(conditions, a_condition("A", TRUE, reason="Kept"))

    put_condition(conditions, conditions[0])

    assert conditions[0].reason == "Kept"


def test_find_returns_none_for_a_type_that_is_not_there() -> None:
    assert find_condition([a_condition("A")], "B") is None


@pytest.mark.parametrize(
    ("statuses", "unmet"),
    [
        pytest.param([], None, id="none"),
        pytest.param([TRUE, TRUE], None, id="all-met"),
        pytest.param([TRUE, UNKNOWN, FALSE], "1", id="first-of-two"),
        pytest.param([FALSE], "0", id="false-is-unmet"),
    ],
)
def test_first_unmet_is_the_first_that_is_not_true(
    statuses: "list[api.ConditionStatus]", unmet: str | None
) -> None:
    conditions = [a_condition(str(n), status) for n, status in enumerate(statuses)]

    found = first_unmet(conditions)

    assert (found.type if found is not None else None) == unmet
