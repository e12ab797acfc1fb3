"""What one model-sync process is told at its start."""

from dataclasses import dataclass, field
from pathlib import Path

from maserve.base.backoff import Backoff
from maserve.base.keys import ReplicaName

STATUS_FILE = "model-sync-status.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncSettings:
    """Places and times of one replica's model-sync.

    `model_config` is the list's file, or the folder of a mounted ConfigMap that holds
    `model-list.json`. `list_lock` is locked around "read the list again; unload": whoever writes
    the list under the same lock knows that no unload follows a write that wants the model; None
    where no such writer exists. `repository` and `cache` lie on one volume, at the same paths for
    every replica that shares the cache. `private` is this replica's own folder on that volume. All
    three are resolved: where a link in the repository leads is compared with them.
    """

    replica: ReplicaName
    model_config: Path
    list_lock: Path | None
    repository: Path
    cache: Path
    private: Path
    readiness_file: Path
    status_file: Path
    unload_grace_s: float = 2.0
    poll_s: float = 0.05
    fallback_s: float = 2.0
    moving_s: float = 0.2
    parallel_downloads: int = 2
    parallel_loads: int = 4
    load_timeout_s: float = 900.0
    lock_timeout_s: float = 10.0
    load_backoff: Backoff = field(default_factory=lambda: Backoff(initial_s=5, limit_s=300))
    download_backoff: Backoff = field(default_factory=lambda: Backoff(initial_s=2, limit_s=300))
