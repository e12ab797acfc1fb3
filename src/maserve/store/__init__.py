"""Where resources are kept: the Store port.

Invariant: every write is fenced by the version it was read at. Implementations are sub-packages and are
never imported from here.
"""

from maserve.store.protocol import (
    Change,
    ChangeType,
    Page,
    Preconditions,
    Selection,
    Store,
)

__all__ = ["Change", "ChangeType", "Page", "Preconditions", "Selection", "Store"]
