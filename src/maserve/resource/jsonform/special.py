"""Messages whose JSON is no object of their fields: some of Google's and of Kubernetes' own."""

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import DecodeError, Message

from maserve.resource.jsonform.form import AnyForm, Form, Wrong, join
from maserve.resource.jsonform.scalars import (
    read_bytes,
    read_scalar,
    read_text,
    write_real,
    write_scalar,
)
from maserve.resource.jsonform.times import (
    read_duration,
    read_instant,
    write_duration,
    write_instant,
)
from maserve.resource.jsonform.unknown import list_unknown
from maserve.wire import find_message

WriteMessage = Callable[[Message, str, Form], Any]
ReadMessage = Callable[[Message, Any, str, Form], None]


def _always(_: Any) -> bool:
    return True


def _no_object(data: Any) -> bool:
    return not isinstance(data, Mapping)


@dataclass(frozen=True, slots=True, kw_only=True)
class Special:
    """How one message is written and read. Both are given the general way, for what is inside.

    `takes` tells whether JSON is in this form; what is not is read field by field.
    """

    write: Callable[[Any, str, Form, WriteMessage], Any]
    read: Callable[[Any, Any, str, Form, ReadMessage], None]
    takes: Callable[[Any], bool] = _always


_QUANTITY = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+|[numkMGTPE]|[KMGTPE]i)?", re.ASCII)


def _write_instant(message: Any, _path: str, _form: Form, _write: WriteMessage) -> Any:
    return write_instant(message.seconds, message.nanos)


def _read_instant(message: Any, data: Any, _path: str, _form: Form, _read: ReadMessage) -> None:
    _set_times(message, *read_instant(read_text(data)))


def _write_duration(message: Any, _path: str, _form: Form, _write: WriteMessage) -> Any:
    return write_duration(message.seconds, message.nanos)


def _read_duration(message: Any, data: Any, _path: str, _form: Form, _read: ReadMessage) -> None:
    _set_times(message, *read_duration(read_text(data)))


def _set_times(message: Any, seconds: int, nanos: int) -> None:
    # Zero stays unset, as a writer of proto3 leaves it; Kubernetes' Time is proto2 and could tell.
    if seconds:
        message.seconds = seconds
    if nanos:
        message.nanos = nanos


def _write_quantity(message: Any, _path: str, _form: Form, _write: WriteMessage) -> Any:
    if not _QUANTITY.fullmatch(message.string):
        raise Wrong(f"is no quantity such as 500m or 2Gi: {message.string!r}")
    return message.string


def _read_quantity(message: Any, data: Any, _path: str, _form: Form, _read: ReadMessage) -> None:
    text = str(data) if isinstance(data, int | float) and not isinstance(data, bool) else data
    if not _QUANTITY.fullmatch(read_text(text)):
        raise Wrong(f"is no quantity such as 500m or 2Gi: {text!r}")
    message.string = text


def _write_int_or_string(message: Any, path: str, form: Form, write: WriteMessage) -> Any:
    del path, form, write
    return message.strVal if message.type else message.intVal


def _read_int_or_string(
    message: Any, data: Any, _path: str, _form: Form, _read: ReadMessage
) -> None:
    fields = message.DESCRIPTOR.fields_by_name
    is_text = isinstance(data, str)
    message.type = int(is_text)
    if is_text:
        message.strVal = data
    else:
        message.intVal = read_scalar(fields["intVal"], data)


def _write_raw_json(message: Any, _path: str, _form: Form, _write: WriteMessage) -> Any:
    try:
        return json.loads(message.Raw or b"{}")
    except ValueError as error:
        raise Wrong("holds what is no JSON") from error


def _read_raw_json(message: Any, data: Any, _path: str, _form: Form, _read: ReadMessage) -> None:
    message.Raw = json.dumps(data, separators=(",", ":")).encode()


def _write_wrapper(message: Any, _path: str, _form: Form, _write: WriteMessage) -> Any:
    return write_scalar(message.DESCRIPTOR.fields_by_name["value"], message.value, as_number=False)


def _read_wrapper(message: Any, data: Any, _path: str, _form: Form, _read: ReadMessage) -> None:
    message.value = read_scalar(message.DESCRIPTOR.fields_by_name["value"], data)


def _write_struct(message: Any, path: str, form: Form, write: WriteMessage) -> Any:
    fields = message.fields
    return {name: write(fields[name], join(path, name), form) for name in sorted(fields)}


def _read_struct(message: Any, data: Any, path: str, form: Form, read: ReadMessage) -> None:
    if not isinstance(data, Mapping):
        raise Wrong("must be an object")
    for name, value in data.items():
        read(message.fields[read_text(name)], value, join(path, name), form)


def _write_list(message: Any, path: str, form: Form, write: WriteMessage) -> Any:
    return [write(value, f"{path}[{i}]", form) for i, value in enumerate(message.values)]


def _read_list(message: Any, data: Any, path: str, form: Form, read: ReadMessage) -> None:
    if not isinstance(data, list | tuple):
        raise Wrong("must be a list")
    for index, value in enumerate(data):
        read(message.values.add(), value, f"{path}[{index}]", form)


def _write_value(message: Any, path: str, form: Form, write: WriteMessage) -> Any:
    match message.WhichOneof("kind"):
        case "null_value":
            return None
        case "number_value":
            if not math.isfinite(message.number_value):
                raise Wrong("is a number that JSON does not have")
            return write_real(message.number_value, is_single=False)
        case "string_value":
            return message.string_value
        case "bool_value":
            return message.bool_value
        case "struct_value":
            return write(message.struct_value, path, form)
        case "list_value":
            return write(message.list_value, path, form)
        case _:
            raise Wrong("has no value")


def _read_value(message: Any, data: Any, path: str, form: Form, read: ReadMessage) -> None:
    match data:
        case None:
            message.null_value = 0
        case bool():
            message.bool_value = data
        case str():
            message.string_value = data
        case int() | float() if math.isfinite(data):
            message.number_value = float(data)
        case Mapping():
            message.struct_value.SetInParent()
            read(message.struct_value, data, path, form)
        case list() | tuple():
            message.list_value.SetInParent()
            read(message.list_value, data, path, form)
        case _:
            raise Wrong("is nothing that JSON has")


def _write_any(message: Any, path: str, form: Form, write: WriteMessage) -> Any:
    if not message.type_url and not message.value:
        return {}
    head = {"@type": message.type_url}
    raw = write_scalar(message.DESCRIPTOR.fields_by_name["value"], message.value, as_number=False)
    kind = _known(message.type_url) if form.any_form is AnyForm.EXPANDED else None
    if kind is None:
        return head | ({"value": raw} if message.value else {})
    try:
        inner = kind.FromString(message.value)
    except DecodeError:
        return head | {"@bytes": raw}
    shown = Form(any_form=form.any_form)
    body = write(inner, path, shown)
    if list_unknown(inner) or shown.problems:
        return head | {"@bytes": raw}
    return head | ({"value": body} if _is_valued(kind) else body)


def _read_any(message: Any, data: Any, path: str, form: Form, read: ReadMessage) -> None:
    if not isinstance(data, Mapping):
        raise Wrong("must be an object with @type")
    body = {word: value for word, value in data.items() if word != "@type"}
    message.type_url = read_text(data.get("@type", ""))
    if body and not message.type_url:
        raise Wrong("must have @type")
    kind = _known(message.type_url) if form.any_form is AnyForm.EXPANDED else None
    if set(body) == {"@bytes"}:
        message.value = read_bytes(body["@bytes"])
    elif kind is not None:
        inner = kind()
        read(inner, body.get("value") if _is_valued(kind) else body, path, form)
        message.value = inner.SerializeToString(deterministic=True)
    elif set(body) <= {"value"}:
        message.value = read_bytes(body.get("value", ""))
    else:
        raise Wrong(f"of type {message.type_url!r}, not known here, can only have a base64 value")


def _known(type_url: str) -> type[Message] | None:
    try:
        return find_message(type_url.rpartition("/")[2])
    except KeyError:
        return None


def _is_valued(kind: type[Message]) -> bool:
    """Tell whether an Any holds its JSON under `value` rather than beside `@type`."""
    return kind.DESCRIPTOR.full_name in SPECIAL or kind.DESCRIPTOR.name == "Empty"


_INSTANT = Special(write=_write_instant, read=_read_instant, takes=_no_object)
_WRAPPERS = ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")

SPECIAL: Mapping[str, Special] = {
    "google.protobuf.Timestamp": _INSTANT,
    "google.protobuf.Duration": Special(write=_write_duration, read=_read_duration),
    "google.protobuf.Struct": Special(write=_write_struct, read=_read_struct),
    "google.protobuf.ListValue": Special(write=_write_list, read=_read_list),
    "google.protobuf.Value": Special(write=_write_value, read=_read_value),
    "google.protobuf.Any": Special(write=_write_any, read=_read_any),
    "k8s.io.apimachinery.pkg.apis.meta.v1.Time": _INSTANT,
    "k8s.io.apimachinery.pkg.apis.meta.v1.FieldsV1": Special(
        write=_write_raw_json, read=_read_raw_json
    ),
    "k8s.io.apimachinery.pkg.api.resource.Quantity": Special(
        write=_write_quantity, read=_read_quantity, takes=_no_object
    ),
    "k8s.io.apimachinery.pkg.util.intstr.IntOrString": Special(
        write=_write_int_or_string, read=_read_int_or_string, takes=_no_object
    ),
} | {
    f"google.protobuf.{name}Value": Special(write=_write_wrapper, read=_read_wrapper)
    for name in _WRAPPERS
}
"""By full name."""
