"""Reads a settings file section by section; unknown keys and wrong values are problems."""

import math
from collections.abc import Mapping
from typing import Any

from maserve.base.durations import parse_duration
from maserve.base.errors import Invalid, Problem


class Section:
    """One mapping of the file. Reading a key marks it as known; `check` reports everything wrong.

    All sections of one file share a list of problems.
    """

    def __init__(self, path: str, rows: object, problems: list[Problem]) -> None:
        self._path = path
        self._problems = problems
        self._known: set[str] = set()
        self._elsewhere: set[str] = set()
        self._parts: dict[str, Section] = {}
        if rows is not None and not isinstance(rows, Mapping):
            problems.append(Problem(path or "settings", "is not a mapping"))
        self._rows: Mapping[str, Any] = rows if isinstance(rows, Mapping) else {}

    def part(self, name: str) -> "Section":
        """Return the section under `name`, always the same one; a missing one is empty."""
        if name not in self._parts:
            self._parts[name] = Section(self._field(name), self._take(name), self._problems)
        return self._parts[name]

    def text(self, name: str, default: str = "") -> str:
        value = self._take(name)
        if value is None:
            return default
        if not isinstance(value, str | int | float) or isinstance(value, bool):
            self._wrong(name, "is not a text")
            return default
        return str(value)

    def flag(self, name: str, *, default: bool) -> bool:
        value = self._take(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            self._wrong(name, f"is neither true nor false: {value!r}")
            return default
        return value

    def number(self, name: str, default: float) -> float:
        """Return a number of zero or more."""
        value = self._take(name)
        if value is None:
            return default
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not math.isfinite(value) or value < 0:
            self._wrong(name, f"is not a number of zero or more: {value!r}")
            return default
        return float(value)

    def count(self, name: str, default: int) -> int:
        """Return a whole number of zero or more."""
        value = self._take(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            self._wrong(name, f"is not a whole number of zero or more: {value!r}")
            return default
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of texts; a missing one is empty."""
        value = self._take(name)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            self._wrong(name, f"is not a list of texts: {value!r}")
            return ()
        return tuple(value)

    def duration(self, name: str, default: float) -> float:
        """Return seconds of a text such as `15m`; a bare 0 is allowed."""
        value = self._take(name)
        if value is None:
            return default
        try:
            return parse_duration(str(value), self._field(name))
        except Invalid as error:
            self._problems.extend(error.problems)
            return default

    def rows(self, name: str) -> tuple[Mapping[str, Any], ...]:
        """Return a list of mappings; a missing one is empty."""
        value = self._take(name)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(row, Mapping) for row in value):
            self._wrong(name, "is not a list of mappings")
            return ()
        return tuple(value)

    def refuse(self, name: str, why: str) -> None:
        """Note a problem with a key whose value cannot be honoured."""
        self._wrong(name, why)

    def refuse_elsewhere(self, places: Mapping[str, str]) -> None:
        """Note a problem with every key that is set and has its place elsewhere; null is not set.

        `places` says why, by key. Such a key is no setting, so it is not listed as known.
        """
        self._elsewhere |= places.keys()
        for name, why in places.items():
            if self._rows.get(name) is not None:
                self._wrong(name, why)

    def check(self) -> None:
        """Note every key nobody has read, here and in the parts below."""
        for name in self._rows:
            if name not in self._known | self._elsewhere:
                known = ", ".join(sorted(self._known))
                self._wrong(str(name), f"is not a setting; known here: {known}")
        for part in self._parts.values():
            part.check()

    def _take(self, name: str) -> Any:
        self._known.add(name)
        return self._rows.get(name)

    def _field(self, name: str) -> str:
        return f"{self._path}.{name}" if self._path else name

    def _wrong(self, name: str, text: str) -> None:
        self._problems.append(Problem(self._field(name), text))
