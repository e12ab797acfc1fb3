"""Looking at message fields by name: what every codec, selector and diff needs of descriptors."""

from collections.abc import Mapping
from functools import cache

from google.protobuf.descriptor import Descriptor, FieldDescriptor


def is_map(field: FieldDescriptor) -> bool:
    """Tell whether a repeated field is spelled `map<…>` in the proto file."""
    entry = field.message_type
    return entry is not None and entry.GetOptions().map_entry


def map_fields(field: FieldDescriptor) -> tuple[FieldDescriptor, FieldDescriptor]:
    """Return what the keys and the values of a map field are."""
    entry = field.message_type
    if entry is None:
        raise TypeError(f"{field.full_name} is no map")
    return entry.fields_by_name["key"], entry.fields_by_name["value"]


def find_field(message: Descriptor, word: str) -> FieldDescriptor | None:
    """Return the field called `word` in the proto file or in JSON."""
    return _by_word(message).get(word)


def scalar_text(field: FieldDescriptor, value: object) -> str:
    """Return a single value as JSON would show it, without quotes: enum names, `true`, digits."""
    if field.enum_type is not None and isinstance(value, int):
        known = field.enum_type.values_by_number.get(value)
        return str(value) if known is None else known.name
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


@cache
def _by_word(message: Descriptor) -> Mapping[str, FieldDescriptor]:
    words = {field.json_name: field for field in message.fields}
    return words | {field.name: field for field in message.fields}
