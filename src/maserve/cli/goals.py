"""What a wait waits for. Pure."""

from dataclasses import dataclass
from enum import StrEnum

from maserve.base.errors import Invalid, Problem
from maserve.cli.fields import prefix, status_enum
from maserve.resource import Kind

_FIELD = "--for"


class Aspect(StrEnum):
    """What of an object is looked at."""

    STAGE = "stage"
    STATE = "state"
    CONDITION = "condition"
    DELETE = "delete"


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """`name` is the condition's type, `value` the stage, state or condition status in short."""

    aspect: Aspect
    value: str = ""
    name: str = ""

    def __str__(self) -> str:
        parts = (part for part in (self.aspect, self.name, self.value) if part)
        return "=".join(parts)

    @property
    def phrase(self) -> str:
        """What an object is that has reached it."""
        return "deleted" if self.aspect is Aspect.DELETE else f"at {self}"


def parse_goal(text: str, kind: Kind) -> Goal:
    """Parse `stage=…`, `state=…`, `condition=TYPE[=STATUS]` or `delete`; case does not matter.

    Raises `Invalid` naming what the kind knows.
    """
    word, _, rest = text.partition("=")
    match word.lower():
        case "delete" if not rest:
            return Goal(aspect=Aspect.DELETE)
        case "condition" if rest:
            return _parse_condition(rest)
        case "stage" | "state" if rest:
            return _parse_enum(Aspect(word.lower()), rest, kind)
        case _:
            known = "stage=…, state=…, condition=TYPE or delete"
            raise Invalid(Problem(_FIELD, f"must be {known}, not {text!r}"))


def _parse_condition(text: str) -> Goal:
    name, _, status = text.partition("=")
    wanted = (status or "TRUE").upper()
    if wanted not in ("TRUE", "FALSE", "UNKNOWN"):
        raise Invalid(Problem(_FIELD, f"a condition is TRUE, FALSE or UNKNOWN, not {status!r}"))
    return Goal(aspect=Aspect.CONDITION, name=name, value=wanted)


def _parse_enum(aspect: Aspect, text: str, kind: Kind) -> Goal:
    name = kind.name
    enum = status_enum(kind.message, aspect)
    if enum is None:
        raise Invalid(Problem(_FIELD, f"{name} has no {aspect}"))
    values = [each.name.removeprefix(prefix(enum)) for each in enum.values[1:]]
    wanted = text.upper().replace("-", "_").removeprefix(prefix(enum))
    if wanted not in values:
        raise Invalid(
            Problem(_FIELD, f"{name} has no {aspect} {text!r}; known: {' '.join(values)}")
        )
    return Goal(aspect=aspect, value=wanted)
