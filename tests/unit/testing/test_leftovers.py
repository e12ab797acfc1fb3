"""After a test nothing of its killed programs is left outside its folder."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from maserve.backends.triton.local.parts import ReplicaPaths
from maserve.backends.triton.local.programs import shm_prefix
from maserve.base.keys import ClusterId, Key, ReplicaName
from maserve.envoy.layout import Layout
from maserve.host import DataFolder
from maserve.testing.leftovers import kill_programs, list_shared_memory, sweep


@pytest.fixture
def folder(tmp_path: Path) -> DataFolder:
    """Return a data folder with one replica and a path too long for a socket."""
    folder = DataFolder(tmp_path / ("long" * 25))
    home(folder).mkdir(parents=True)
    return folder


@pytest.fixture
def region(folder: DataFolder) -> Iterator[Path]:
    """Yield shared memory that is called like the replica's."""
    name = f"{shm_prefix(ReplicaPaths(home=home(folder)))}1"
    region = Path("/dev/shm") / name
    region.touch()
    yield region
    region.unlink(missing_ok=True)


def home(folder: DataFolder) -> Path:
    return folder.replica(ClusterId("c1"), Key("ns", "is"), ReplicaName("r0"))


def test_shared_memory_of_the_replicas_is_swept_and_nobody_elses(
    folder: DataFolder, region: Path, tmp_path: Path
) -> None:
    assert list_shared_memory(folder) == [region]
    sweep(DataFolder(tmp_path / "another"))
    assert region.exists()
    sweep(folder)
    assert not region.exists()
    assert list_shared_memory(folder) == []


def test_socket_that_did_not_fit_into_the_folder_is_swept(folder: DataFolder) -> None:
    socket = Layout(folder.path / "envoy").admin_socket(Path(tempfile.gettempdir()))
    socket.parent.mkdir()
    socket.touch()
    sweep(folder)
    assert not socket.parent.exists()


def test_programs_are_killed_though_a_record_cannot_be_read(folder: DataFolder) -> None:
    (folder.processes / "unreadable.json").mkdir(parents=True)
    argv = (sys.executable, "-c", "print(flush=True); input()", str(folder.path))
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, stdin=pipe, stdout=pipe) as program:
        assert program.stdout is not None
        program.stdout.readline()  # before it runs its command line may not be there to be read
        kill_programs(folder)
        assert program.wait(timeout=10) == -9
