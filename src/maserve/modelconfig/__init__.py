"""Which models a server should hold: entries, phases, the ModelConfigProvider port.

Invariant: a list that cannot be read is never taken for empty and never overwritten.
Implementations are sub-packages and are never imported from here.
"""

from maserve.modelconfig.protocol import ModelConfigProvider
from maserve.modelconfig.types import (
    Entry,
    Phase,
    find_entry,
    parse_entries,
    promoted,
    render_entries,
    with_entry,
    without_entry,
)

__all__ = [
    "Entry",
    "ModelConfigProvider",
    "Phase",
    "find_entry",
    "parse_entries",
    "promoted",
    "render_entries",
    "with_entry",
    "without_entry",
]
