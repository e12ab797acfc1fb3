"""Which of the JSON forms is written or read, and how problems travel."""

from dataclasses import dataclass, field, replace
from enum import StrEnum

from maserve.base.errors import Invalid, Problem


class AnyForm(StrEnum):
    """How an Any looks.

    STORED is `{"@type": …, "value": <base64>}` for every type, as the reference keeps it. EXPANDED
    shows the fields of types we know, and `{"@type": …, "@bytes": <base64>}` where those would
    not read back the same. Only the order of map entries within the bytes is not kept.
    """

    STORED = "stored"
    EXPANDED = "expanded"


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """The form of one message tree, and what is wrong in it.

    `is_metadata`: Kubernetes' own JSON, where int64 is a number and what equals its default is
    left out.
    """

    any_form: AnyForm = AnyForm.STORED
    is_metadata: bool = False
    problems: list[Problem] = field(default_factory=list)

    def for_metadata(self) -> "Form":
        return replace(self, is_metadata=True)

    def complain(self, path: str, text: str) -> None:
        self.problems.append(Problem(path, text))

    def refuse(self) -> None:
        """Raise `Invalid` with everything that was complained of, if anything was."""
        if self.problems:
            raise Invalid(*self.problems)


class Wrong(Exception):
    """One value cannot be read or written; the text goes on after the field's path."""


def join(path: str, word: str) -> str:
    """Return the path of a field within `path`."""
    return f"{path}.{word}" if path else word
