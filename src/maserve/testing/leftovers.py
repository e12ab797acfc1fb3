"""What programs that are killed leave outside their data folder.

A control plane that starts on the folder again removes it. After a test none ever does.
"""

import tempfile
from pathlib import Path

from maserve.backends.triton.local.parts import ReplicaPaths
from maserve.backends.triton.local.programs import shm_prefix
from maserve.envoy.layout import Layout
from maserve.envoy.process import remove_socket
from maserve.host import DataFolder, remove_shared_memory
from maserve.host.program import kill_marked, list_records

_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - where POSIX shared memory lives


def kill_programs(folder: DataFolder) -> None:
    """Kill every program on record, as a machine does that loses its power."""
    for record in list_records(folder.processes):
        kill_marked(record)


def sweep(folder: DataFolder) -> None:
    """Remove shared memory and socket of programs that have ended; only when no more will start."""
    for prefix in _prefixes(folder):
        remove_shared_memory(prefix)
    envoy = Layout(folder.path / "envoy")
    remove_socket(envoy.admin_socket(Path(tempfile.gettempdir())), keep=envoy.folder)


def list_shared_memory(folder: DataFolder) -> list[Path]:
    """Return the shared memory of all replicas; other tests on this machine have theirs."""
    prefixes = _prefixes(folder)
    return [path for path in _SHARED_MEMORY.iterdir() if path.name.startswith(prefixes)]


def _prefixes(folder: DataFolder) -> tuple[str, ...]:
    homes = folder.clusters.glob("*/*/*/replicas/*")
    return tuple(shm_prefix(ReplicaPaths(home=home)) for home in homes)
