"""Durations as people write them in settings: `15m`, `1h30m`, `250ms`, `0`."""

import re

from maserve.base.errors import Invalid, Problem

_UNIT_S = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)")


def parse_duration(text: str, field: str = "duration") -> float:
    """Return the seconds of a Go-style duration.

    A bare `0` is allowed, any other bare number is not.

    Raises `Invalid` naming `field`.
    """
    body = text.strip()
    sign = -1.0 if body.startswith("-") else 1.0
    rest = body.lstrip("+-")
    if rest == "0":
        return 0.0
    parts = _PART.findall(rest)
    if not parts or "".join(number + unit for number, unit in parts) != rest:
        raise Invalid(Problem(field, f"is not a duration such as 15m or 1h30m: {text!r}"))
    return sign * sum(float(number) * _UNIT_S[unit] for number, unit in parts)


def render_duration(seconds: float) -> str:
    """Return the shortest such text, exact to a millisecond: `15m`, `1h30m`, `1.5s`."""
    if seconds <= 0:
        return "0s"
    total_ms = round(seconds * 1000)
    if total_ms < 1000:
        return f"{total_ms}ms"
    whole, milliseconds = divmod(total_ms, 1000)
    hours, rest = divmod(whole, 3600)
    minutes, left = divmod(rest, 60)
    tail = f"{left + milliseconds / 1000:g}s" if left or milliseconds else ""
    return (f"{hours}h" if hours else "") + (f"{minutes}m" if minutes else "") + tail
