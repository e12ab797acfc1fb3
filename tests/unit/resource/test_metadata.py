from datetime import UTC, datetime

import pytest

from maserve.base.keys import Key
from maserve.resource import (
    add_finalizer,
    clone,
    decode,
    deletion_time,
    has_finalizer,
    is_deleting,
    is_dns_label,
    is_dns_subdomain,
    is_label_key,
    is_label_value,
    key_of,
    remove_finalizer,
    set_annotation,
)
from maserve.wire import v2


def a_model() -> v2.Model:
    model = v2.Model()
    model.metadata.namespace, model.metadata.name = "n", "m"
    return model


def test_a_clone_shares_nothing() -> None:
    model = a_model()
    copy = clone(model)
    copy.metadata.name = "other"
    assert key_of(model) == Key("n", "m")
    assert decode(v2.Model, model.SerializeToString()) == model


def test_deletion_is_told_by_its_time() -> None:
    model = a_model()
    assert (is_deleting(model), deletion_time(model)) == (False, None)
    model.metadata.deletionTimestamp.seconds = 60
    assert is_deleting(model)
    assert deletion_time(model) == datetime(1970, 1, 1, 0, 1, tzinfo=UTC)


def test_finalizers_are_added_once_and_removed() -> None:
    model = a_model()
    add_finalizer(model, "a/b")
    add_finalizer(model, "a/b")
    add_finalizer(model, "c/d")
    assert list(model.metadata.finalizers) == ["a/b", "c/d"]
    remove_finalizer(model, "a/b")
    assert not has_finalizer(model, "a/b")
    assert has_finalizer(model, "c/d")


def test_annotations_are_set_and_removed() -> None:
    model = a_model()
    set_annotation(model, "a", "1")
    assert dict(model.metadata.annotations) == {"a": "1"}
    set_annotation(model, "a", None)
    set_annotation(model, "a", None)
    assert dict(model.metadata.annotations) == {}


@pytest.mark.parametrize(
    ("text", "label", "subdomain"),
    [
        ("a", True, True),
        ("a-b-1", True, True),
        ("a.b", False, True),
        ("a..b", False, False),
        ("-a", False, False),
        ("a-", False, False),
        ("A", False, False),
        ("a_b", False, False),
        ("", False, False),
        ("é", False, False),
        ("a\n", False, False),
        ("a" * 63, True, True),
        ("a" * 64, False, True),
        ("a" * 254, False, False),
    ],
)
def test_names_are_dns_names(text: str, label: bool, subdomain: bool) -> None:
    assert is_dns_label(text) is label
    assert is_dns_subdomain(text) is subdomain


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", True),
        ("michelangelo/UpdateTimestamp", True),
        ("a.io/b_c.d", True),
        ("", False),
        ("/a", False),
        ("a/", False),
        ("A.io/b", False),
        ("a/b/c", False),
        ("x" * 64, False),
    ],
)
def test_label_keys_are_qualified_names(text: str, expected: bool) -> None:
    assert is_label_key(text) is expected


def test_label_values_may_be_empty_or_short_names() -> None:
    assert is_label_value("")
    assert is_label_value("A_b.c-1")
    assert not is_label_value("a b")
    assert not is_label_value("x" * 64)
