"""What the local Triton backend is built of, shared by its servers and replicas."""

from dataclasses import dataclass
from pathlib import Path

from maserve.backends.triton.local.engine import Engine, ModelSyncCommand, ReplicaEndpoints
from maserve.backends.triton.settings import TritonSettings
from maserve.base.clock import Clock
from maserve.base.keys import Key
from maserve.base.signals import Signal
from maserve.host import DataFolder, PortBook, Supervisor, Worker


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalTritonParts:
    """Everything the backend needs from outside.

    `changed` is told the server's key whenever a replica's state or a model's load state changed.
    `files` does the backend's small writes and the removal of folders.
    """

    supervisor: Supervisor
    folder: DataFolder
    ports: PortBook
    clock: Clock
    settings: TritonSettings
    engine: Engine
    modelsync: ModelSyncCommand
    endpoints: ReplicaEndpoints
    changed: Signal[Key]
    files: Worker


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaPaths:
    """The files of one replica."""

    home: Path

    @property
    def models(self) -> Path:
        return self.home / "models"

    @property
    def state(self) -> Path:
        return self.home / "replica.json"

    @property
    def readiness(self) -> Path:
        return self.home / "readiness.json"

    @property
    def sync_status(self) -> Path:
        """Return where model-sync says how far each model is."""
        return self.home / "model-sync-status.json"

    @property
    def engine_log(self) -> Path:
        return self.home / "engine.log"

    @property
    def modelsync_log(self) -> Path:
        return self.home / "model-sync.log"
