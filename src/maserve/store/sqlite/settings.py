"""What can be set about the SQLite store."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSettings:
    """Bounds of the store.

    History answers watches and continued lists; a reader further behind than it gets `Expired`.
    Both of its bounds hold. Events beyond theirs are forgotten, oldest first.
    """

    history_changes: int = 10_000
    history_bytes: int = 64 * 1024 * 1024
    events_per_object: int = 50
    events_per_namespace: int = 1_000
    busy_timeout_s: float = 5.0
    writes_per_commit: int = 64
    """Writes that wait for the disk together; each is still kept or undone on its own."""
