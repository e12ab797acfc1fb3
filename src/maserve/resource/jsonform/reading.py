"""JSON values to messages, collecting every problem."""

import difflib
from collections.abc import Mapping
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from maserve.resource.fields import find_field, is_map, map_fields
from maserve.resource.jsonform.form import Form, Wrong, join
from maserve.resource.jsonform.scalars import read_map_key, read_scalar
from maserve.resource.jsonform.special import SPECIAL


def read_message(message: Message, data: Any, path: str, form: Form) -> None:
    """Fill an empty `message` from `data`; what is wrong becomes problems of `form`.

    Field names may be those of the proto file or of JSON; null is the same as absent.
    """
    special = SPECIAL.get(message.DESCRIPTOR.full_name)
    if special is not None and special.takes(data):
        try:
            special.read(message, data, path, form, read_message)
        except Wrong as wrong:
            form.complain(path, str(wrong))
        return
    if not isinstance(data, Mapping):
        form.complain(path, f"must be an object of {message.DESCRIPTOR.name}")
        return
    _read_fields(message, data, path, form)


def _read_fields(message: Message, data: Mapping[Any, Any], path: str, form: Form) -> None:
    kind: Any = message.DESCRIPTOR  # one of two equal classes, says its stub
    seen: dict[str, str] = {}
    for word, value in data.items():
        place = join(path, str(word))
        field = find_field(kind, word) if isinstance(word, str) else None
        if field is None:
            form.complain(place, _unknown(kind, str(word)))
            continue
        if value is None and not _takes_null(field):
            continue
        rival = seen.get(_slot(field))
        seen[_slot(field)] = str(word)
        if rival is not None:
            form.complain(place, f"cannot be given together with {rival}")
            continue
        _read_field(message, field, value, place, form)


def _slot(field: FieldDescriptor) -> str:
    """Return what only one word may fill: the field, or the oneof it is in."""
    return field.name if field.containing_oneof is None else f"oneof {field.containing_oneof.name}"


def _takes_null(field: FieldDescriptor) -> bool:
    kind = field.message_type
    return kind is not None and kind.full_name == "google.protobuf.Value" and not field.is_repeated


def _unknown(message: Descriptor, word: str) -> str:
    words = [field.json_name for field in message.fields]
    near = difflib.get_close_matches(word, words, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"is no field of {message.name}{hint}"


def _read_field(
    message: Message, field: FieldDescriptor, value: Any, path: str, form: Form
) -> None:
    if is_map(field):
        _read_map(getattr(message, field.name), field, value, path, form)
    elif field.is_repeated:
        _read_list(getattr(message, field.name), field, value, path, form)
    elif field.message_type is not None:
        child = getattr(message, field.name)
        child.SetInParent()
        read_message(child, value, path, form)
    else:
        try:
            setattr(message, field.name, read_scalar(field, value))
        except Wrong as wrong:
            form.complain(path, str(wrong))


def _read_map(entries: Any, field: FieldDescriptor, value: Any, path: str, form: Form) -> None:
    if not isinstance(value, Mapping):
        form.complain(path, "must be an object")
        return
    key_field, value_field = map_fields(field)
    for word, item in value.items():
        place = f"{path}[{word}]"
        try:
            key = read_map_key(key_field, word)
            if value_field.message_type is not None:
                read_message(entries[key], item, place, form)
            else:
                entries[key] = read_scalar(value_field, item)
        except Wrong as wrong:
            form.complain(place, str(wrong))


def _read_list(items: Any, field: FieldDescriptor, value: Any, path: str, form: Form) -> None:
    if not isinstance(value, list | tuple):
        form.complain(path, "must be a list")
        return
    for index, item in enumerate(value):
        place = f"{path}[{index}]"
        if field.message_type is not None:
            read_message(items.add(), item, place, form)
            continue
        try:
            items.append(read_scalar(field, item))
        except Wrong as wrong:
            form.complain(place, str(wrong))
