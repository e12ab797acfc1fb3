"""Single values as JSON, both ways. What does not fit raises `Wrong`."""

import base64
import binascii
import math
import struct
from typing import Any

from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor

from maserve.resource.jsonform.form import Wrong

_F = FieldDescriptor
_SMALL = {_F.CPPTYPE_INT32: (-(2**31), 2**31 - 1), _F.CPPTYPE_UINT32: (0, 2**32 - 1)}
_LARGE = {_F.CPPTYPE_INT64: (-(2**63), 2**63 - 1), _F.CPPTYPE_UINT64: (0, 2**64 - 1)}
_RANGES = _SMALL | _LARGE
_REAL = {_F.CPPTYPE_FLOAT, _F.CPPTYPE_DOUBLE}
_EXACT = 2**53
_FLOAT_MAX = struct.unpack("<f", b"\xff\xff\x7f\x7f")[0]
_WORDS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def write_scalar(field: FieldDescriptor, value: Any, *, as_number: bool) -> Any:
    """Return `value` as JSON; `as_number` writes int64 as a number, else it is text."""
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return value if known is None else known.name
    if field.cpp_type in _LARGE:
        return value if as_number else str(value)
    if field.cpp_type in _REAL:
        return write_real(value, is_single=field.cpp_type == _F.CPPTYPE_FLOAT)
    if field.type == _F.TYPE_BYTES:
        return base64.b64encode(value).decode()
    return value


def read_scalar(field: FieldDescriptor, value: Any) -> Any:
    """Return what a field is set to for the JSON `value`."""
    if field.enum_type is not None:
        return _read_enum(field.enum_type, value)
    if field.cpp_type in _RANGES:
        return _read_integer(value, *_RANGES[field.cpp_type])
    if field.cpp_type in _REAL:
        return read_real(value, is_single=field.cpp_type == _F.CPPTYPE_FLOAT)
    if field.cpp_type == _F.CPPTYPE_BOOL:
        return _read_bool(value)
    return read_bytes(value) if field.type == _F.TYPE_BYTES else read_text(value)


def read_map_key(field: FieldDescriptor, word: str) -> Any:
    """Return a map's key for its JSON spelling, which is always text."""
    if field.cpp_type == _F.CPPTYPE_BOOL:
        if word not in {"true", "false"}:
            raise Wrong(f"has a key that is neither true nor false: {word!r}")
        return word == "true"
    return read_scalar(field, word)


def write_real(value: float, *, is_single: bool) -> Any:
    """Return a number, or the words JSON has no number for."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    is_negative_zero = value == 0 and math.copysign(1, value) < 0
    if value.is_integer() and abs(value) < _EXACT and not is_negative_zero:
        return int(value)
    return _shortest(value) if is_single else value


def read_real(value: Any, *, is_single: bool) -> float:
    number = _WORDS.get(value) if isinstance(value, str) else None
    if number is not None:
        return number
    number = _number(value)
    if not math.isfinite(number):
        raise Wrong(f"is out of range for a number: {_spell(value)}")
    if is_single and abs(number) > _FLOAT_MAX:
        raise Wrong(f"is out of range for a single-precision number: {value}")
    return number


def read_text(value: Any) -> str:
    if not isinstance(value, str):
        hint = " (put it in quotes)" if isinstance(value, int | float) else ""
        raise Wrong(f"must be a string{hint}, not {_spell(value)}")
    return value


def read_bytes(value: Any) -> bytes:
    """Return the bytes of base64 text, of either alphabet, padded or not."""
    text = read_text(value).rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError) as error:
        raise Wrong("must be base64") from error


def _read_bool(value: Any) -> bool:
    if not isinstance(value, bool):
        raise Wrong(f"must be true or false, not {_spell(value)}")
    return value


def _read_integer(value: Any, lowest: int, highest: int) -> int:
    number = _number(value)
    exact = int(value) if isinstance(value, str) and value.lstrip("-").isdigit() else number
    if not math.isfinite(number) or exact != int(exact):
        raise Wrong(f"must be a whole number, not {_spell(value)}")
    if not lowest <= exact <= highest:
        raise Wrong(f"must be in the range [{lowest},{highest}], not {value}")
    return int(exact)


def _number(value: Any) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise Wrong(f"must be a number, not {_spell(value)}")
    if not isinstance(value, str):
        return value
    try:
        return float(value) if value == value.strip() and "_" not in value else _no_number(value)
    except ValueError:
        return _no_number(value)


def _no_number(value: str) -> float:
    raise Wrong(f"must be a number, not {_spell(value)}")


def _read_enum(enum: EnumDescriptor, value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return _read_integer(value, *_SMALL[_F.CPPTYPE_INT32])
    known = enum.values_by_name.get(value) if isinstance(value, str) else None
    if known is None:
        names = ", ".join(each.name for each in enum.values)
        raise Wrong(f"is no {enum.name}: {_spell(value)}; known: {names}")
    return int(known.number)


def _shortest(value: float) -> float:
    """Return the number with the fewest digits that is the same in single precision."""
    wanted = struct.pack("<f", value)
    candidates = (float(f"{value:.{digits}g}") for digits in range(6, 9))
    fits = (each for each in candidates if abs(each) <= _FLOAT_MAX)
    return next((each for each in fits if struct.pack("<f", each) == wanted), value)


def _spell(value: Any) -> str:
    """Return how a message shows what was given, however large."""
    names = {dict: "an object", list: "a list", type(None): "null"}
    text = names.get(type(value)) or repr(value)
    return text if len(text) <= 80 else f"{text[:77]}…"
