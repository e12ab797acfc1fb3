"""The errors that cross package borders.

Expected outcomes are values; these are for what a caller cannot go on from. Each carries its data
as fields and builds its sentence in `__str__`.
"""

from dataclasses import dataclass


class Error(Exception):
    """Base of every error this project raises on purpose."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One broken rule of an input: the field's path and what is wrong with it."""

    field: str
    text: str

    def __str__(self) -> str:
        return f"{self.field} {self.text}" if self.field else self.text


class Invalid(Error):
    """Input breaks rules; every problem is listed, the first one first."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__(*problems)
        self.problems = problems

    def __str__(self) -> str:
        return "; ".join(str(problem) for problem in self.problems)


class _ObjectError(Error):
    """An error about one object; `name` is a key or a bare name."""

    _text = "{kind} {name}"

    def __init__(self, kind: str, name: object, detail: str = "") -> None:
        super().__init__(kind, name, detail)
        self.kind = kind
        self.name = str(name)
        self.detail = detail

    def __str__(self) -> str:
        text = self._text.format(kind=self.kind, name=self.name)
        return f"{text}: {self.detail}" if self.detail else text


class NotFound(_ObjectError):
    """The object is not there."""

    _text = "{kind} {name} not found"


class Exists(_ObjectError):
    """The object is there already."""

    _text = "{kind} {name} already exists"


class Conflict(_ObjectError):
    """The version that was read is stale; read again and start over."""

    _text = "{kind} {name} was changed meanwhile"


class _TextError(Error):
    """An error that is one sentence."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what

    def __str__(self) -> str:
        return self.what


class Expired(_TextError):
    """A watch or a list continues from a version that history no longer holds; list again."""


class Denied(_TextError):
    """We may not; a retry does not help."""


class Unsupported(_TextError):
    """Nobody here can do it."""


class Unavailable(_TextError):
    """Unreachable or timed out; a retry may help."""
