"""The data folder: where everything of the embedded mode is kept, and who may use it."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from maserve.base.errors import Denied, Invalid, Problem, Unavailable
from maserve.base.keys import ClusterId, Key, ReplicaName
from maserve.host.files import remove_empty_folders

_LOCK = "control-plane.json"


class FolderLock:
    """A held lock; `publish` tells a second comer where the holder answers."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def publish(self, address: str) -> None:
        """Write pid and `address` into the lock file. The lock itself is not touched."""
        text = json.dumps({"pid": os.getpid(), "address": address}) + "\n"
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, text.encode(), 0)


class DataFolder:
    """Paths below one folder. Nothing is made before it is needed."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()

    @contextmanager
    def lock(self) -> Iterator[FolderLock]:
        """Hold the folder for this process; the lock dies with the process, however it ends.

        Raises `Denied` naming the holder's pid and address, `Unavailable` when the folder cannot be
        made. Child processes do not inherit the lock.
        """
        descriptor = self._open_lock()
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(descriptor, 4096, 0)
            os.close(descriptor)
            raise Denied(self._in_use(holder)) from error
        try:
            held = FolderLock(descriptor)
            held.publish("")
            yield held
        finally:
            os.ftruncate(descriptor, 0)
            os.close(descriptor)

    def find_holder(self) -> int | None:
        """Return the pid of the process that holds the folder, None when nobody does."""
        try:
            descriptor = os.open(self.path / _LOCK, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return _parse_pid(os.pread(descriptor, 4096, 0))
        else:
            return None
        finally:
            os.close(descriptor)

    @property
    def settings_file(self) -> Path:
        """Return where the last process kept what a later one must know to end its programs."""
        return self.path / "settings.json"

    @property
    def processes(self) -> Path:
        """Return where the supervisor keeps one file per program."""
        return self.path / "processes"

    @property
    def ports_file(self) -> Path:
        return self.path / "ports.json"

    @property
    def engines(self) -> Path:
        """Return where prepared copies of serving engines are kept, one folder per version."""
        return self.path / "engines"

    @property
    def clusters(self) -> Path:
        return self.path / "clusters"

    def inference_server(self, cluster: ClusterId, key: Key) -> Path:
        """Return the folder of one inference server in one cluster.

        Raises `Invalid` for names that would lead elsewhere.
        """
        parts = (cluster, key.namespace, key.name)
        wrong = next((part for part in parts if part in ("", ".", "..") or "/" in part), None)
        if wrong is not None:
            raise Invalid(Problem("name", f"cannot be a folder: {wrong!r}"))
        return self.clusters.joinpath(*parts)

    def model_config(self, cluster: ClusterId, key: Key) -> Path:
        """Return the file with the models that server should hold."""
        return self.inference_server(cluster, key) / "model-list.json"

    def lifted_requirements(self, cluster: ClusterId, key: Key) -> Path:
        """Return the file with the models that are not required for readiness now."""
        return self.inference_server(cluster, key) / "lifted-requirements.json"

    def model_cache(self, cluster: ClusterId, key: Key) -> Path:
        """Return where downloads are shared by the server's replicas."""
        return self.inference_server(cluster, key) / "cache"

    def replicas(self, cluster: ClusterId, key: Key) -> Path:
        return self.inference_server(cluster, key) / "replicas"

    def replica(self, cluster: ClusterId, key: Key, replica: ReplicaName) -> Path:
        """Return the folder of one replica: models, logs, state."""
        return self.replicas(cluster, key) / replica

    def remove_empty(self, path: Path) -> None:
        """Remove `path` and its parents below this folder as far as they are empty."""
        remove_empty_folders(path, stop=self.path)

    def _open_lock(self) -> int:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            return os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise Unavailable(f"cannot use data folder {self.path}: {error.strerror}") from error

    def _in_use(self, holder: bytes) -> str:
        try:
            known = json.loads(holder)
            who = f"process {known['pid']}"
            where = f", which answers on {known['address']}" if known["address"] else ""
        except (ValueError, KeyError, TypeError):
            who, where = "another process", ""
        return f"data folder {self.path} is in use by {who}{where}"


def _parse_pid(holder: bytes) -> int | None:
    try:
        return int(json.loads(holder)["pid"])
    except (ValueError, KeyError, TypeError):
        return None
