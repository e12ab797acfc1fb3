"""Any message of any kind: what is written reads back the same, in both forms and as YAML."""

import json
from typing import Any

import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from maserve.resource import (
    KINDS,
    Kind,
    check_readable,
    from_json,
    from_shown_json,
    from_yaml,
    to_json,
    to_shown_json,
    to_yaml,
)
from maserve.resource.fields import is_map, map_fields
from maserve.wire import find_message

F = FieldDescriptor
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(
    [
        "",
        "on",
        "yes",
        "null",
        "~",
        "1",
        "1e5",
        "0x1f",
        "1:30",
        "2026-01-31",
        "<<",
        "- a",
        "a: b",
        "#",
    ]
)
INTEGERS = {
    F.CPPTYPE_INT32: st.integers(-(2**31), 2**31 - 1),
    F.CPPTYPE_UINT32: st.integers(0, 2**32 - 1),
    F.CPPTYPE_INT64: st.integers(-(2**63), 2**63 - 1),
    F.CPPTYPE_UINT64: st.integers(0, 2**64 - 1),
}
SCALARS: dict[int, st.SearchStrategy[Any]] = {
    **INTEGERS,
    F.CPPTYPE_BOOL: st.booleans(),
    F.CPPTYPE_DOUBLE: st.floats(allow_nan=True),
    F.CPPTYPE_FLOAT: st.floats(width=32, allow_nan=True),
}


def scalar(field: FieldDescriptor) -> st.SearchStrategy[Any]:
    if field.enum_type is not None:
        return st.sampled_from([value.number for value in field.enum_type.values])
    if field.cpp_type == F.CPPTYPE_STRING:
        return st.binary(max_size=5) if field.type == F.TYPE_BYTES else TEXT
    return SCALARS[field.cpp_type]


def instant(draw: st.DrawFn, message: Any) -> None:
    message.seconds = draw(st.integers(-62135596800, 253402300799).filter(bool))
    nanos = draw(st.integers(0, 999_999_999))
    if nanos:
        message.nanos = nanos


def duration(draw: st.DrawFn, message: Any) -> None:
    sign = draw(st.sampled_from([-1, 1]))
    message.seconds = sign * draw(st.integers(0, 315_576_000_000))
    message.nanos = sign * draw(st.integers(0, 999_999_999))


JSON = st.recursive(
    st.none() | st.booleans() | TEXT | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


def struct(draw: st.DrawFn, message: Any) -> None:
    message.update(draw(st.dictionaries(TEXT, JSON, max_size=3)))


def any_value(draw: st.DrawFn, message: Any) -> None:
    inner = draw(
        messages("google.protobuf.Struct")
        | messages("google.protobuf.Duration")
        | messages("google.protobuf.BytesValue")
        | messages("google.protobuf.StringValue")
        | messages("michelangelo.api.ResourceIdentifier")
    )
    message.type_url = f"type.googleapis.com/{inner.DESCRIPTOR.full_name}"
    message.value = inner.SerializeToString(deterministic=True)


def quantity(draw: st.DrawFn, message: Any) -> None:
    message.string = draw(st.sampled_from(["1", "500m", "2Gi", "1.5", "1e3", ".5", "-3k"]))


def port(draw: st.DrawFn, message: Any) -> None:
    message.type = draw(st.sampled_from([0, 1]))
    if message.type:
        message.strVal = draw(TEXT)
    else:
        message.intVal = draw(INTEGERS[F.CPPTYPE_INT32])


def raw_json(draw: st.DrawFn, message: Any) -> None:
    body = draw(st.dictionaries(TEXT, st.integers(), max_size=2))
    message.Raw = json.dumps(body, separators=(",", ":")).encode()


SPECIAL = {
    "google.protobuf.Timestamp": instant,
    "google.protobuf.Duration": duration,
    "google.protobuf.Struct": struct,
    "google.protobuf.Any": any_value,
    "k8s.io.apimachinery.pkg.apis.meta.v1.Time": instant,
    "k8s.io.apimachinery.pkg.apis.meta.v1.FieldsV1": raw_json,
    "k8s.io.apimachinery.pkg.api.resource.Quantity": quantity,
    "k8s.io.apimachinery.pkg.util.intstr.IntOrString": port,
}


def fill(draw: st.DrawFn, message: Any, depth: int) -> None:
    """Set some fields of `message`, deeper ones more rarely."""
    descriptor: Descriptor = message.DESCRIPTOR
    special = SPECIAL.get(descriptor.full_name)
    if special is not None:
        special(draw, message)
        return
    wanted = draw(
        st.sets(st.sampled_from(range(len(descriptor.fields))), max_size=max(1, 4 - depth))
        if descriptor.fields
        else st.just(set())
    )
    for index in sorted(wanted):
        set_field(draw, message, descriptor.fields[index], depth)


def set_field(draw: st.DrawFn, message: Any, field: FieldDescriptor, depth: int) -> None:
    value = getattr(message, field.name)
    if is_map(field):
        key_field, value_field = map_fields(field)
        for key in draw(st.lists(scalar(key_field), max_size=2, unique=True)):
            if value_field.message_type is not None:
                fill(draw, value[key], depth + 1)
            else:
                value[key] = draw(scalar(value_field))
    elif field.is_repeated:
        for _ in range(draw(st.integers(0, 2))):
            if field.message_type is not None:
                fill(draw, value.add(), depth + 1)
            else:
                value.append(draw(scalar(field)))
    elif field.message_type is not None:
        value.SetInParent()
        fill(draw, value, depth + 1)
    else:
        setattr(message, field.name, draw(scalar(field)))


@st.composite
def messages(draw: st.DrawFn, name: str) -> Message:
    message = find_message(name)()
    fill(draw, message, 0)
    return message


@st.composite
def resources(draw: st.DrawFn) -> tuple[Kind, Any]:
    kind = draw(st.sampled_from(KINDS))
    resource: Any = kind.message()
    fill(draw, resource.spec, 0)
    fill(draw, resource.status, 0)
    resource.metadata.name = draw(TEXT)
    for key in draw(st.lists(TEXT, max_size=2)):
        resource.metadata.labels[key] = draw(TEXT)
    return kind, resource


def parts(resource: Any) -> tuple[bytes, bytes]:
    """Return spec and status as bytes: unlike ==, these find a NaN equal to itself."""
    spec, status = resource.spec, resource.status
    return spec.SerializeToString(deterministic=True), status.SerializeToString(deterministic=True)


AS_MANY = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@pytest.mark.timeout(60)  # hypothesis draws whole resources
@AS_MANY
@given(resources())
def test_every_resource_reads_back_from_json(pair: tuple[Kind, Any]) -> None:
    kind, resource = pair
    wired = json.loads(json.dumps(to_json(resource)))
    assert parts(from_json(kind.message, wired)) == parts(resource)
    assert parts(from_shown_json(kind.message, to_shown_json(resource))) == parts(resource)
    check_readable(resource)


@pytest.mark.timeout(60)  # hypothesis draws whole resources
@AS_MANY
@given(resources())
def test_every_resource_reads_back_from_yaml(pair: tuple[Kind, Any]) -> None:
    _, resource = pair
    (manifest,) = from_yaml(to_yaml([resource]))
    assert parts(manifest.resource) == parts(resource)
    assert dict(manifest.resource.metadata.labels) == dict(resource.metadata.labels)
