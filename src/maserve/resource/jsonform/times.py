"""Instants and durations as JSON text, to the nanosecond. What does not fit raises `Wrong`."""

import re
from datetime import UTC, datetime, timedelta

from maserve.resource.jsonform.form import Wrong

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_S = int((datetime(1, 1, 1, tzinfo=UTC) - _EPOCH).total_seconds())
_LAST_S = int((datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC) - _EPOCH).total_seconds())
_MAX_DURATION_S = 315_576_000_000
_BILLION = 1_000_000_000

_INSTANT = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?([Zz]|[+-]\d\d:\d\d)", re.ASCII
)
_DURATION = re.compile(r"(-?)(\d+)(?:\.(\d{1,9}))?s", re.ASCII)


def write_instant(seconds: int, nanos: int) -> str:
    """Return RFC 3339 text in UTC with no, 3, 6 or 9 digits of a second."""
    if not (_FIRST_S <= seconds <= _LAST_S and 0 <= nanos < _BILLION):
        raise Wrong("is an instant outside of the years 1 to 9999")
    whole = _EPOCH + timedelta(seconds=seconds)
    text = whole.replace(tzinfo=None).isoformat(timespec="seconds")
    return f"{text}{_fraction(nanos)}Z"


def read_instant(text: str) -> tuple[int, int]:
    """Return seconds and nanoseconds since 1970 of RFC 3339 text."""
    found = _INSTANT.fullmatch(text)
    if found is None:
        raise Wrong(f"must be a time such as 2026-01-31T08:30:00Z, not {text!r}")
    day, time, fraction, zone = found.groups()
    try:
        whole = datetime.fromisoformat(f"{day}T{time}{zone.upper().replace('Z', '+00:00')}")
    except ValueError as error:
        raise Wrong(f"is no time: {text!r} ({error})") from error
    seconds = (whole - _EPOCH) // timedelta(seconds=1)
    if not _FIRST_S <= seconds <= _LAST_S:
        raise Wrong(f"is outside of the years 1 to 9999: {text!r}")
    return seconds, int((fraction or "").ljust(9, "0"))


def write_duration(seconds: int, nanos: int) -> str:
    """Return such as `1.500s`, with no, 3, 6 or 9 digits of a second."""
    is_sound = abs(seconds) <= _MAX_DURATION_S and abs(nanos) < _BILLION and seconds * nanos >= 0
    if not is_sound:
        raise Wrong("is a duration out of range (about 10,000 years) or of two signs")
    sign = "-" if seconds < 0 or nanos < 0 else ""
    return f"{sign}{abs(seconds)}{_fraction(abs(nanos))}s"


def read_duration(text: str) -> tuple[int, int]:
    """Return seconds and nanoseconds, of one sign."""
    found = _DURATION.fullmatch(text)
    if found is None:
        raise Wrong(f"must be a duration in seconds such as 1.5s, not {text!r}")
    sign, whole, fraction = found.groups()
    seconds, nanos = int(whole), int((fraction or "").ljust(9, "0"))
    if seconds > _MAX_DURATION_S:
        raise Wrong(f"is out of range, at most {_MAX_DURATION_S}s: {text!r}")
    return (-seconds, -nanos) if sign else (seconds, nanos)


def _fraction(nanos: int) -> str:
    if not nanos:
        return ""
    digits = f"{nanos:09d}"
    if digits.endswith("000000"):
        return f".{digits[:3]}"
    return f".{digits[:6]}" if digits.endswith("000") else f".{digits}"
