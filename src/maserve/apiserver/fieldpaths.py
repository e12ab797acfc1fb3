"""Reading a field of a resource by its path, as list criteria name it. Pure.

A path may begin with the kind (`revision.spec.…`); its segments are snake_case or camelCase. What
follows a map is one key, dots included. A repeated field on the way yields a value per item.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from maserve.base.errors import Invalid, Problem
from maserve.resource import Kind, Resource
from maserve.resource.fields import find_field, is_map, scalar_text

Value = str | int | float | bool | datetime
"""A field's value in comparable form; enums are their names, bytes their hex digits."""

_TIMES = frozenset({"google.protobuf.Timestamp", "k8s.io.apimachinery.pkg.apis.meta.v1.Time"})


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldPath:
    """A path that was found in a kind; `key` is the map key behind the last field, None if none."""

    text: str
    fields: tuple[FieldDescriptor, ...]
    key: str | None = None

    @property
    def is_kind(self) -> bool:
        """True for fields that hold a kind's name, which compares in any case."""
        return self.fields[-1].name == "kind"

    def values(self, resource: Resource) -> tuple[Value, ...]:
        """Return the values there are; a field at its default has none."""
        return tuple(self._walk(resource, 0))

    def clear(self, resource: Resource) -> None:
        """Remove the field from `resource`, which must be the caller's own copy."""
        for holder in self._holders(resource):
            if self.key is None:
                holder.ClearField(self.fields[-1].name)
            else:
                getattr(holder, self.fields[-1].name).pop(self.key, None)

    def _holders(self, resource: Message) -> Iterator[Message]:
        holders: list[Message] = [resource]
        for field in self.fields[:-1]:
            holders = [child for holder in holders for child in _children(holder, field)]
        return iter(holders)

    def _walk(self, holder: Message, depth: int) -> Iterator[Value]:
        field = self.fields[depth]
        if depth + 1 < len(self.fields):
            for child in _children(holder, field):
                yield from self._walk(child, depth + 1)
        elif self.key is not None:
            found = getattr(holder, field.name)
            if self.key in found:
                yield from _comparable(field, found[self.key])
        else:
            yield from _leaves(holder, field)


def parse_path(text: str, kind: Kind) -> FieldPath:
    """Return the path that `text` names. Raises `Invalid` for a field that is not there."""
    words = text.split(".")
    if len(words) > 1 and words[0] in {kind.field, kind.name, kind.name.lower()}:
        words = words[1:]
    fields: list[FieldDescriptor] = []
    message: Descriptor | None = kind.message.DESCRIPTOR
    for index, word in enumerate(words):
        field = _find(message, word) if message is not None else None
        if field is None:
            raise Invalid(Problem("list_options_ext", f"{kind.name} has no field {text!r}"))
        fields.append(field)
        if is_map(field) and index + 1 < len(words):
            return FieldPath(text=text, fields=tuple(fields), key=".".join(words[index + 1 :]))
        message = None if is_map(field) else field.message_type
    return FieldPath(text=text, fields=tuple(fields))


def _find(message: Descriptor, word: str) -> FieldDescriptor | None:
    """Kubernetes' own messages spell their fields in camelCase; callers need not know which do."""
    first, *others = word.split("_")
    camel = first + "".join(other.capitalize() for other in others)
    return find_field(message, word) or find_field(message, camel)


def _children(holder: Message, field: FieldDescriptor) -> list[Message]:
    if field.is_repeated:
        return list(getattr(holder, field.name))
    return [getattr(holder, field.name)] if holder.HasField(field.name) else []


def _leaves(holder: Message, field: FieldDescriptor) -> Iterator[Value]:
    if is_map(field):
        yield from sorted(str(key) for key in getattr(holder, field.name))
    elif field.is_repeated:
        for item in getattr(holder, field.name):
            yield from _comparable(field, item)
    elif field.message_type is not None:
        for child in _children(holder, field):
            yield from _comparable(field, child)
    elif (value := getattr(holder, field.name)) != field.default_value:
        yield from _comparable(field, value)


def _comparable(field: FieldDescriptor, value: Any) -> Iterator[Value]:
    if isinstance(value, Message):
        yield from _comparable_message(value)
    elif field.enum_type is not None:
        yield scalar_text(field, value)
    elif isinstance(value, bytes):
        yield value.hex()
    else:
        yield value


def _comparable_message(value: Any) -> Iterator[Value]:
    """Yield an instant, a length in seconds, or the name of what is referred to."""
    name = value.DESCRIPTOR.full_name
    if name in _TIMES:
        yield datetime(1970, 1, 1, tzinfo=UTC) + timedelta(
            seconds=value.seconds, microseconds=value.nanos // 1000
        )
    elif name == "google.protobuf.Duration":
        yield value.seconds + value.nanos / 1e9
    elif name == "michelangelo.api.ResourceIdentifier":
        yield value.name
    else:
        yield str(value).strip()
