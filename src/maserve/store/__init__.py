"""Where resources are kept: the Store port, and the log of their events.

Invariant: every write is fenced by the version it was read at. Implementations are sub-packages
and are never imported from here.
"""

from maserve.store.errors import Unusable
from maserve.store.events import EventLog, EventRow
from maserve.store.protocol import (
    Change,
    ChangeType,
    Page,
    Preconditions,
    Selection,
    Store,
)

__all__ = [
    "Change",
    "ChangeType",
    "EventLog",
    "EventRow",
    "Page",
    "Preconditions",
    "Selection",
    "Store",
    "Unusable",
]
