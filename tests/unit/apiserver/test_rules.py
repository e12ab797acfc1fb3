"""What each validation option asks of a value."""

from typing import Any

import pytest

from maserve.apiserver.rules import find_broken, find_broken_size, find_missing
from maserve.wire import api, v2

TEXT = v2.ModelFamilySpec.DESCRIPTOR.fields_by_name["name"]
NUMBER = v2.ProjectSpec.DESCRIPTOR.fields_by_name["tier"]
FRACTION = v2.ModelSpec.DESCRIPTOR.fields_by_name["decision_threshold"]
FLAG = v2.ModelSpec.DESCRIPTOR.fields_by_name["sealed"]
ENUM = v2.ModelSpec.DESCRIPTOR.fields_by_name["kind"]
MESSAGE = v2.ProjectSpec.DESCRIPTOR.fields_by_name["owner"]
LIST = v2.ModelSpec.DESCRIPTOR.fields_by_name["deployable_artifact_uri"]

IN = api.Validation()
getattr(IN, "in").extend(["a", "b"])


@pytest.mark.parametrize(
    ("rule", "field", "value", "text"),
    [
        (api.Validation(min="1", max="5"), NUMBER, 6, "must be in the range [1,5]"),
        (api.Validation(min="1", max="5"), NUMBER, 5, None),
        (
            api.Validation(min="1", max="5", excl_min=True, excl_max=True),
            NUMBER,
            5,
            "must be in the range (1,5)",
        ),
        (api.Validation(min="1"), NUMBER, 0, "must be >= 1"),
        (api.Validation(min="1", excl_min=True), NUMBER, 1, "must be > 1"),
        (api.Validation(max="1"), NUMBER, 2, "must be <= 1"),
        (api.Validation(max="1", excl_max=True), NUMBER, 1, "must be < 1"),
        (api.Validation(min="0", max="1"), FRACTION, float("nan"), "must be in the range [0,1]"),
        (api.Validation(min="1", msg="is too small"), NUMBER, 0, "is too small"),
        (api.Validation(min_length="2"), TEXT, "a", "must be at least 2 characters long"),
        (api.Validation(max_length="2"), TEXT, "abc", "must be at most 2 characters long"),
        (
            api.Validation(min_length="1", max_length="2"),
            TEXT,
            "",
            "must be 1 to 2 characters long",
        ),
        (api.Validation(min_length="1"), TEXT, b"", "must be at least 1 characters long"),
        (api.Validation(pattern="a+"), TEXT, b"b", None),
        (api.Validation(pattern="a+"), TEXT, "aab", "must match a+"),
        (api.Validation(pattern="a+"), TEXT, "aa", None),
        (api.Validation(not_pattern="a+"), TEXT, "aa", "must not match a+"),
        (IN, TEXT, "c", "must be one of [a,b]"),
        (IN, TEXT, "a", None),
        (api.Validation(not_in=["a"]), TEXT, "a", "must not be one of [a]"),
        (api.Validation(uuid=True), TEXT, "x", "must be a valid UUID"),
        (api.Validation(email=True), TEXT, "a@b", None),
        (api.Validation(email=True), TEXT, "a", "must be a valid email address"),
        (api.Validation(uri=True), TEXT, "s3://b/k", None),
        (api.Validation(uri=True), TEXT, "b/k", "must be a valid URI"),
        (api.Validation(ipv4=True), TEXT, "::1", "must be a valid IPv4 address"),
        (api.Validation(ipv6=True), TEXT, "1.2.3.4", "must be a valid IPv6 address"),
        (api.Validation(ip=True), TEXT, "1.2.3.4", None),
        (api.Validation(ip=True), TEXT, "1.2.3", "must be a valid IP address"),
        (api.Validation(hostname=True), TEXT, "Example.com", None),
        (api.Validation(hostname=True), TEXT, "a_b", "must be a valid host name"),
        (api.Validation(host_address=True), TEXT, "::1", None),
        (api.Validation(host_address=True), TEXT, "a b", "must be a valid host name or IP address"),
        (api.Validation(min="1"), ENUM, 0, None),
    ],
)
def test_a_rule_says_what_is_wrong(
    rule: api.Validation, field: Any, value: Any, text: str | None
) -> None:
    assert find_broken(rule, field, value) == text


@pytest.mark.parametrize(
    ("field", "value", "is_set", "text"),
    [
        (TEXT, "", True, "cannot be empty"),
        (TEXT, "a", True, None),
        (LIST, [], False, "cannot be empty"),
        (MESSAGE, None, False, "cannot be nil"),
        (MESSAGE, None, True, None),
        (NUMBER, 0, True, "must be a non-zero number"),
        (NUMBER, 1, True, None),
        (FLAG, False, True, "must be a non-zero value"),
        (ENUM, 0, True, "must be a non-zero value"),
    ],
)
def test_what_is_required_must_be_there(
    field: Any, value: Any, is_set: bool, text: str | None
) -> None:
    assert find_missing(field, value, is_set=is_set) == text


@pytest.mark.parametrize(
    ("rule", "value", "text"),
    [
        (api.Validation(min_items="1"), [], "must have at least 1 items"),
        (api.Validation(max_items="1"), ["a", "b"], "must have at most 1 items"),
        (api.Validation(unique_items=True), ["a", "a"], "must not have equal items"),
        (api.Validation(unique_items=True, msg="repeats"), ["a", "a"], "repeats"),
        (api.Validation(max_items="1"), ["a"], None),
    ],
)
def test_sizes_are_checked(rule: api.Validation, value: list[str], text: str | None) -> None:
    assert find_broken_size(rule, value) == text
