"""What one `michelangelo.api.validation` option asks of one value. Pure.

Texts of required values and of ranges are the reference's (behaviour 1.5); the others are ours. An
option `msg` replaces any of them.
"""

import ipaddress
import re
from collections.abc import Callable, Iterator
from typing import Any

from google.protobuf.descriptor import FieldDescriptor

from maserve.resource import is_dns_subdomain
from maserve.wire import api

_HEX = "[0-9a-fA-F]"
_UUID = re.compile(
    rf"(urn:uuid:)?{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}"
    rf"|\{{{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}\}}"
    rf"|{_HEX}{{32}}"
)
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+")
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+")

_NUMBERS = frozenset(
    {
        FieldDescriptor.CPPTYPE_INT32,
        FieldDescriptor.CPPTYPE_INT64,
        FieldDescriptor.CPPTYPE_UINT32,
        FieldDescriptor.CPPTYPE_UINT64,
        FieldDescriptor.CPPTYPE_FLOAT,
        FieldDescriptor.CPPTYPE_DOUBLE,
    }
)


def find_missing(field: FieldDescriptor, value: Any, *, is_set: bool) -> str | None:
    """Return what is wrong with a required field that has no value, None if it has one."""
    if field.is_repeated or field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        return None if len(value) else "cannot be empty"
    if field.message_type is not None:
        return None if is_set else "cannot be nil"
    if value:
        return None
    return "must be a non-zero number" if is_number(field) else "must be a non-zero value"


def find_broken(rule: api.Validation, field: FieldDescriptor, value: Any) -> str | None:
    """Return the first thing that is wrong with one value that is neither list nor map."""
    if is_number(field):
        broken = _range_text(rule, float(value))
    elif field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        broken = next(_text_problems(rule, value), None)
    else:
        broken = None
    return broken and (rule.msg or broken)


def find_broken_size(rule: api.Validation, value: Any) -> str | None:
    """Return what is wrong with the number of items of a list or map, or with repeated items."""
    broken = _bounds_text("must have {} items", rule.min_items, rule.max_items, len(value))
    if broken is None and rule.unique_items and len(set(map(str, value))) < len(value):
        broken = "must not have equal items"
    return broken and (rule.msg or broken)


def is_number(field: FieldDescriptor) -> bool:
    """Tell whether a field's values are numbers; enums are not."""
    return field.cpp_type in _NUMBERS


def _range_text(rule: api.Validation, value: float) -> str | None:
    """Check the bounds; a NaN is inside of none."""
    above = not rule.min or (value > float(rule.min) if rule.excl_min else value >= float(rule.min))
    below = not rule.max or (value < float(rule.max) if rule.excl_max else value <= float(rule.max))
    if above and below:
        return None
    if rule.min and rule.max:
        left, right = "(" if rule.excl_min else "[", ")" if rule.excl_max else "]"
        return f"must be in the range {left}{rule.min},{rule.max}{right}"
    if rule.min:
        return f"must be {'>' if rule.excl_min else '>='} {rule.min}"
    return f"must be {'<' if rule.excl_max else '<='} {rule.max}"


def _text_problems(rule: api.Validation, value: str | bytes) -> Iterator[str]:
    length = _bounds_text(
        "must be {} characters long", rule.min_length, rule.max_length, len(value)
    )
    if length:
        yield length
    if isinstance(value, bytes):
        return
    if rule.pattern and not re.fullmatch(rule.pattern, value):
        yield f"must match {rule.pattern}"
    if rule.not_pattern and re.fullmatch(rule.not_pattern, value):
        yield f"must not match {rule.not_pattern}"
    allowed = getattr(rule, "in")
    if allowed and value not in allowed:
        yield f"must be one of [{','.join(allowed)}]"
    if value in rule.not_in:
        yield f"must not be one of [{','.join(rule.not_in)}]"
    for name, text, is_right in _SHAPES:
        if getattr(rule, name) and not is_right(value):
            yield f"must be {text}"


def _bounds_text(shape: str, low: str, high: str, size: int) -> str | None:
    if (not low or size >= int(low)) and (not high or size <= int(high)):
        return None
    if low and high:
        return shape.format(f"{low} to {high}")
    return shape.format(f"at least {low}" if low else f"at most {high}")


def _is_ip(text: str, *versions: int) -> bool:
    try:
        return ipaddress.ip_address(text).version in versions
    except ValueError:
        return False


def _is_hostname(text: str) -> bool:
    return is_dns_subdomain(text.lower())


_SHAPES: tuple[tuple[str, str, Callable[[str], bool]], ...] = (
    ("uuid", "a valid UUID", lambda text: _UUID.fullmatch(text) is not None),
    ("email", "a valid email address", lambda text: _EMAIL.fullmatch(text) is not None),
    ("uri", "a valid URI", lambda text: _URI.fullmatch(text) is not None),
    ("ipv4", "a valid IPv4 address", lambda text: _is_ip(text, 4)),
    ("ipv6", "a valid IPv6 address", lambda text: _is_ip(text, 6)),
    ("ip", "a valid IP address", lambda text: _is_ip(text, 4, 6)),
    ("hostname", "a valid host name", _is_hostname),
    (
        "host_address",
        "a valid host name or IP address",
        lambda text: _is_hostname(text) or _is_ip(text, 4, 6),
    ),
)
