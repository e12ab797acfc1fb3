"""Label and field selectors in Kubernetes syntax: parse once, match many.

Labels: `a=b`, `a==b`, `a!=b`, `a in (x,y)`, `a notin (x)`, `a`, `!a`, `a>1`, `a<1`, joined by
commas.
Fields: `path=value`, `path==value`, `path!=value`, joined by commas; a path is any chain of message
fields in snake_case or camelCase, such as `metadata.name` or `status.state`.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from maserve.base.errors import Invalid, Problem
from maserve.resource.fields import find_field, is_map, scalar_text
from maserve.resource.kinds import R, Resource
from maserve.resource.wellformed import is_label_key, is_label_value


class Operator(StrEnum):
    """How a requirement compares."""

    IN = "in"
    NOT_IN = "notin"
    EXISTS = "exists"
    ABSENT = "absent"
    ABOVE = ">"
    BELOW = "<"


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """One comparison of one label. `values` is empty for EXISTS and ABSENT."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Tell whether it holds; a missing label satisfies NOT_IN and ABSENT only."""
        return _HOLDS[self.operator](labels.get(self.key), self.values)


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """Requirements that must all hold; none at all selects everything."""

    requirements: tuple[Requirement, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.requirements)

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(requirement.matches(labels) for requirement in self.requirements)


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldTerm:
    """One comparison of one field; `path` holds the descriptors from the resource down."""

    path: tuple[FieldDescriptor, ...]
    value: str
    equal: bool

    def matches(self, resource: Resource) -> bool:
        """Tell whether it holds; an unset field reads as its default, enums as their names."""
        holder: Message = resource
        for step in self.path[:-1]:
            holder = getattr(holder, step.name)
        leaf = self.path[-1]
        text = scalar_text(leaf, getattr(holder, leaf.name))
        return (text == self.value) is self.equal


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """Terms that must all hold; none at all selects everything."""

    terms: tuple[FieldTerm, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.terms)

    def matches(self, resource: Resource) -> bool:
        return all(term.matches(resource) for term in self.terms)


def parse_labels(text: str) -> LabelSelector:
    """Return the selector that `text` spells. Raises `Invalid` quoting the part that is wrong."""
    parts = _split(text)
    return LabelSelector(tuple(_parse_requirement(part) for part in parts))


def parse_fields(text: str, kind: type[R]) -> FieldSelector:
    """Return the selector over fields of `kind`. Raises `Invalid`, also for an unknown field."""
    parts = _split(text)
    return FieldSelector(tuple(_parse_term(part, kind) for part in parts))


_LABEL_FORMS = (
    re.compile(r"(?P<key>[^\s!=<>(),]+)\s*(?P<op>==|=|!=|>|<)\s*(?P<value>[^\s!=<>(),]*)"),
    re.compile(r"(?P<key>[^\s!=<>(),]+)\s+(?P<op>in|notin)\s*\((?P<values>[^()]*)\)"),
    re.compile(r"(?P<key>[^\s!=<>(),]+)(?P<op>)"),
    re.compile(r"(?P<op>!)\s*(?P<key>[^\s!=<>(),]+)"),
)
_OPERATORS = {
    "=": Operator.IN,
    "==": Operator.IN,
    "!=": Operator.NOT_IN,
    "in": Operator.IN,
    "notin": Operator.NOT_IN,
    "": Operator.EXISTS,
    "!": Operator.ABSENT,
    ">": Operator.ABOVE,
    "<": Operator.BELOW,
}
_FIELD_FORM = re.compile(r"(?P<path>[^=!]+?)\s*(?P<op>==|=|!=)\s*(?P<value>.*)", re.DOTALL)
_INTEGER = re.compile(r"[+-]?\d+")

_HOLDS: dict[Operator, Callable[[str | None, tuple[str, ...]], bool]] = {
    Operator.IN: lambda found, values: found in values,
    Operator.NOT_IN: lambda found, values: found not in values,
    Operator.EXISTS: lambda found, _: found is not None,
    Operator.ABSENT: lambda found, _: found is None,
    Operator.ABOVE: lambda found, values: _is_integer(found) and int(found or 0) > int(values[0]),
    Operator.BELOW: lambda found, values: _is_integer(found) and int(found or 0) < int(values[0]),
}


def _is_integer(text: str | None) -> bool:
    return text is not None and _INTEGER.fullmatch(text) is not None


def _split(text: str) -> list[str]:
    """Cut at the commas that are outside parentheses; empty text has no part."""
    if not text.strip():
        return []
    return [part.strip() for part in re.split(r",(?![^(]*\))", text)]


def _parse_requirement(part: str) -> Requirement:
    found = next((match for form in _LABEL_FORMS if (match := form.fullmatch(part))), None)
    if found is None:
        raise Invalid(Problem("labelSelector", f"cannot be read at {part!r}"))
    groups = found.groupdict()
    operator = _OPERATORS[groups["op"]]
    values = _values(groups)
    _check(part, groups["key"], operator, values)
    return Requirement(key=groups["key"], operator=operator, values=values)


def _values(groups: Mapping[str, str | None]) -> tuple[str, ...]:
    if (many := groups.get("values")) is not None:
        return tuple(value.strip() for value in many.split(","))
    one = groups.get("value")
    return () if one is None else (one,)


def _check(part: str, key: str, operator: Operator, values: tuple[str, ...]) -> None:
    if not is_label_key(key):
        raise Invalid(Problem("labelSelector", f"has a key that is no label name: {key!r}"))
    wrong = next((value for value in values if not is_label_value(value)), None)
    if wrong is not None:
        raise Invalid(Problem("labelSelector", f"has a value that is no label value: {wrong!r}"))
    if operator in {Operator.ABOVE, Operator.BELOW} and not _is_integer(values[0]):
        raise Invalid(Problem("labelSelector", f"compares with what is no integer: {part!r}"))


def _parse_term(part: str, kind: type[R]) -> FieldTerm:
    found = _FIELD_FORM.fullmatch(part)
    if found is None:
        raise Invalid(Problem("fieldSelector", f"cannot be read at {part!r}"))
    path = _resolve(found["path"], kind)
    return FieldTerm(path=path, value=found["value"].strip(), equal=found["op"] != "!=")


def _resolve(text: str, kind: type[R]) -> tuple[FieldDescriptor, ...]:
    path: list[FieldDescriptor] = []
    message: Descriptor | None = kind.DESCRIPTOR
    for word in text.split("."):
        field = None if message is None else find_field(message, word)
        if field is None:
            raise Invalid(Problem("fieldSelector", f"names a field that is not there: {text!r}"))
        path.append(field)
        message = None if is_map(field) or field.is_repeated else field.message_type
    if message is not None or path[-1].is_repeated:
        raise Invalid(Problem("fieldSelector", f"names a field that is no single value: {text!r}"))
    return tuple(path)
