"""Checks a resource by the rules written in its proto files and by its names. Pure.

Every problem is reported: nested fields in field order, then the message's own oneofs, then names.
Of one field only the first broken rule is. Source: behaviour 1.5 and 17.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from maserve.apiserver.naming import unwritten_problems
from maserve.apiserver.rules import find_broken, find_broken_size, find_missing
from maserve.base.errors import Invalid, Problem
from maserve.resource import Resource, check_readable, problems_of
from maserve.resource.fields import is_map
from maserve.wire import api, option

_OWN = "michelangelo.api"


def check(resource: Resource, extra: Iterable[Problem] = ()) -> None:
    """Raise `Invalid` with every problem; `extra` ones, of rules added by a build, come last.

    A resource without a spec is checked as one with an empty spec.
    """
    problems = [
        *message_problems(resource.spec, "spec"),
        *problems_of(resource),
        *unwritten_problems(resource),
        *extra,
    ]
    if problems:
        raise Invalid(*dict.fromkeys(problems))
    check_readable(resource)


def message_problems(message: Message, path: str = "") -> Iterator[Problem]:
    """Yield what breaks the rules written in the proto files, below `path`."""
    plan = _plan(message.DESCRIPTOR)
    for rules in plan.fields:
        yield from _field_problems(message, rules, path)
    for name, fields in plan.required_oneofs:
        if message.WhichOneof(name) is None:
            where = f"{_join(path, name)}({','.join(fields)})"
            yield Problem("", f"one field in oneof {where} must be set")


@dataclass(frozen=True, slots=True, kw_only=True)
class _FieldRules:
    field: FieldDescriptor
    is_required: bool
    rules: tuple[api.Validation, ...]
    has_nested: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """What to look at in a message; fields without any rule in or below them are left out."""

    fields: tuple[_FieldRules, ...]
    required_oneofs: tuple[tuple[str, tuple[str, ...]], ...]


@cache
def _plan(message: Descriptor) -> _Plan:
    required = option(message, f"{_OWN}.no_default") is True
    return _Plan(
        fields=tuple(
            rules
            for field in message.fields
            if (rules := _rules_of(field, all_required=required)) is not None
        ),
        required_oneofs=tuple(
            (oneof.name, tuple(field.name for field in oneof.fields))
            for oneof in message.oneofs
            if option(oneof, f"{_OWN}.required") is True
        ),
    )


def _rules_of(field: FieldDescriptor, *, all_required: bool) -> _FieldRules | None:
    rules: tuple[api.Validation, ...] = option(field, f"{_OWN}.validation")
    is_optional = any(rule.optional for rule in rules)
    is_required = any(rule.required for rule in rules) or (all_required and not is_optional)
    nested = _nested(field)
    has_nested = nested is not None and nested.full_name.startswith(f"{_OWN}.")
    if not (rules or is_required or has_nested):
        return None
    return _FieldRules(field=field, is_required=is_required, rules=rules, has_nested=has_nested)


def _nested(field: FieldDescriptor) -> Descriptor | None:
    message = field.message_type
    return message.fields_by_name["value"].message_type if message and is_map(field) else message


def _field_problems(message: Message, rules: _FieldRules, path: str) -> Iterator[Problem]:
    field, where = rules.field, _join(path, rules.field.name)
    value = getattr(message, field.name)
    is_set = len(value) > 0 if field.is_repeated else _is_set(message, field)
    if field.containing_oneof is not None and not is_set:
        return
    broken = find_missing(field, value, is_set=is_set) if rules.is_required else None
    if broken is not None:
        text = next((rule.msg for rule in rules.rules if rule.required and rule.msg), broken)
        yield Problem(where, text)
    else:
        yield from _value_problems(rules, value, where)
    if rules.has_nested and is_set:
        yield from _nested_problems(field, value, where)


def _is_set(message: Message, field: FieldDescriptor) -> bool:
    return message.HasField(field.name) if field.has_presence else True


def _value_problems(rules: _FieldRules, value: Any, where: str) -> Iterator[Problem]:
    """Yield the first broken rule of a field, or one per item of a list or map."""
    field = rules.field
    for rule in rules.rules:
        if not field.is_repeated:
            problems = _problem(where, find_broken(rule, field, value))
        elif size := find_broken_size(rule, value):
            problems = _problem(where, size)
        elif is_map(field):
            problems = tuple(_map_problems(rule, field, value, where))
        else:
            problems = tuple(
                problem
                for index, item in enumerate(value)
                for problem in _problem(f"{where}[{index}]", find_broken(rule.items, field, item))
            )
        if problems:
            yield from problems
            return


def _map_problems(
    rule: api.Validation, field: FieldDescriptor, value: Any, where: str
) -> Iterator[Problem]:
    entry = field.message_type
    assert entry is not None  # noqa: S101 - a map field has an entry type
    for key in sorted(value):
        yield from _problem(
            f"{where}[{key}]", find_broken(rule.keys, entry.fields_by_name["key"], key)
        )
        yield from _problem(
            f"{where}[{key}]", find_broken(rule.values, entry.fields_by_name["value"], value[key])
        )


def _nested_problems(field: FieldDescriptor, value: Any, where: str) -> Iterator[Problem]:
    if is_map(field):
        for key in sorted(value):
            yield from message_problems(value[key], f"{where}[{key}]")
    elif field.is_repeated:
        for index, item in enumerate(value):
            yield from message_problems(item, f"{where}[{index}]")
    else:
        yield from message_problems(value, where)


def _problem(where: str, text: str | None) -> tuple[Problem, ...]:
    return (Problem(where, text),) if text else ()


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
