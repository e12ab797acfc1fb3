"""Finding what a message carries from a newer version of its proto file."""

from collections.abc import Iterator
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet

from maserve.resource.fields import is_map, map_fields
from maserve.resource.jsonform.form import join


def list_unknown(message: Message, path: str = "") -> tuple[str, ...]:
    """Return the paths of all fields we have no name for, such as `spec.#99`; JSON lacks them."""
    return tuple(_walk(message, path))


def _walk(message: Message, path: str) -> Iterator[str]:
    found: Any = UnknownFieldSet(message)  # iterable, which its stub does not say
    for field in found:
        yield join(path, f"#{field.field_number}")
    for descriptor, value in message.ListFields():
        if descriptor.message_type is not None:
            for place, child in _children(descriptor, value):
                yield from _walk(child, join(path, place))


def _children(field: FieldDescriptor, value: Any) -> Iterator[tuple[str, Message]]:
    if is_map(field):
        if map_fields(field)[1].message_type is not None:
            yield from ((f"{field.json_name}[{key}]", value[key]) for key in value)
    elif field.is_repeated:
        yield from ((f"{field.json_name}[{index}]", child) for index, child in enumerate(value))
    else:
        yield field.json_name, value
