"""The store on one SQLite file, for a control plane on one machine.

Role: `Store` and `EventLog` with full durability. **Invariants:** an acknowledged write is on the
disk; SQLite is used on one thread only, never on the event loop; a watch holds a position in the
history, never a queue; nothing polls. It must not know what the objects mean.
"""

from maserve.store.sqlite.settings import StoreSettings
from maserve.store.sqlite.store import SqliteStore

__all__ = ["SqliteStore", "StoreSettings"]
