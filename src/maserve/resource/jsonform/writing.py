"""Messages to JSON values."""

from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from maserve.resource.fields import is_map, map_fields
from maserve.resource.jsonform.form import Form, Wrong, join
from maserve.resource.jsonform.scalars import write_scalar
from maserve.resource.jsonform.special import SPECIAL

# In Kubernetes' own JSON these are pointers: a value that equals its default still says something.
_POINTERS = {"deletionGracePeriodSeconds", "controller", "blockOwnerDeletion"}


def write_message(message: Message, path: str, form: Form) -> Any:
    """Return the JSON of `message`; what JSON cannot hold becomes a problem of `form`."""
    special = SPECIAL.get(message.DESCRIPTOR.full_name)
    if special is not None:
        try:
            return special.write(message, path, form, write_message)
        except Wrong as wrong:
            form.complain(path, str(wrong))
            return None
    return {
        field.json_name: _write_field(field, value, join(path, field.json_name), form)
        for field, value in message.ListFields()
        if not (form.is_metadata and _is_left_out(field, value))
    }


def _is_left_out(field: FieldDescriptor, value: Any) -> bool:
    """Tell whether Kubernetes' JSON omits the value: an empty text, a zero, a time not set."""
    if field.message_type is not None:
        return not field.is_repeated and value.ByteSize() == 0 and field.name != "fieldsV1"
    return not value and field.name not in _POINTERS


def _write_field(field: FieldDescriptor, value: Any, path: str, form: Form) -> Any:
    if is_map(field):
        return _write_map(field, value, path, form)
    if field.is_repeated:
        return [_write_one(field, one, f"{path}[{i}]", form) for i, one in enumerate(value)]
    return _write_one(field, value, path, form)


def _write_map(field: FieldDescriptor, entries: Any, path: str, form: Form) -> dict[str, Any]:
    _, holder = map_fields(field)
    return {
        _write_key(key): _write_one(holder, entries[key], f"{path}[{key}]", form)
        for key in sorted(entries)
    }


def _write_key(key: object) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


def _write_one(field: FieldDescriptor, value: Any, path: str, form: Form) -> Any:
    if field.message_type is not None:
        return write_message(value, path, form)
    return write_scalar(field, value, as_number=form.is_metadata)
