"""Serving frameworks: the Backend port, its registry and its values.

Invariant: knows no framework; an implementation is a sub-package and is never imported from here.
"""

from maserve.backends.protocol import Backend
from maserve.backends.registry import BackendRegistry
from maserve.backends.types import (
    LoadReport,
    LoadState,
    ReplicaLoad,
    ReplicaStatus,
    ServerState,
    ServerStatus,
    find_failed,
    is_loaded,
    summary,
)

__all__ = [
    "Backend",
    "BackendRegistry",
    "LoadReport",
    "LoadState",
    "ReplicaLoad",
    "ReplicaStatus",
    "ServerState",
    "ServerStatus",
    "find_failed",
    "is_loaded",
    "summary",
]
