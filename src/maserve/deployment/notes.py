"""The state's own sentence at the end of `status.message`.

A Deployment's message has several authors: a rollout or a rollback says why it failed, and that
stays. What the state has to say comes last, one sentence that begins with one of three words, so
that it can be renewed and taken away without touching what stands before it. Pure.
"""

import re
from enum import StrEnum

_NOTE = re.compile(r"(?:^|; )(?:Unhealthy|Degraded|Progressing): .*\Z", re.DOTALL)


class Note(StrEnum):
    """How a sentence about the state begins."""

    UNHEALTHY = "Unhealthy"
    DEGRADED = "Degraded"
    PROGRESSING = "Progressing"


def with_note(message: str, note: Note | None, text: str = "") -> str:
    """Return the message with its last sentence about the state replaced; None takes it away."""
    said = without_note(message)
    if note is None:
        return said
    return f"{said}; {note}: {text}" if said else f"{note}: {text}"


def without_note(message: str) -> str:
    """Return what the other authors of the message have said."""
    return _NOTE.sub("", message)
