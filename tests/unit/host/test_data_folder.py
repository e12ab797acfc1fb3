import subprocess
import sys
from pathlib import Path

import pytest

from maserve.base.errors import Denied, Unavailable
from maserve.base.keys import ClusterId, Key, ReplicaName
from maserve.host import DataFolder

HOLD = """
import pathlib, sys, time
from maserve.host import DataFolder
with DataFolder(pathlib.Path(sys.argv[1])).lock() as lock:
    lock.publish("127.0.0.1:15566")
    print("held", flush=True)
    time.sleep(30)
"""
KEY = Key("default", "is1")
CLUSTER = ClusterId("c1")


def test_second_holder_is_told_who_has_the_folder_and_the_lock_dies_with_its_process(
    tmp_path: Path,
) -> None:
    first = subprocess.Popen([sys.executable, "-c", HOLD, tmp_path], stdout=subprocess.PIPE)
    assert first.stdout is not None
    assert first.stdout.readline() == b"held\n"
    said = f"{tmp_path} is in use by process {first.pid}, which answers on 127.0.0.1:15566"
    with pytest.raises(Denied, match=said), DataFolder(tmp_path).lock():
        pass
    first.kill()
    first.communicate()
    with DataFolder(tmp_path).lock():
        pass


def test_lock_can_be_taken_again_after_it_was_left(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    with folder.lock():
        pass
    with folder.lock(), pytest.raises(Denied, match=r"in use by process \d+$"), folder.lock():
        pass


def test_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Unavailable, match=r"cannot use data folder .*file/below"):
        DataFolder(tmp_path / "file" / "below").lock().__enter__()


def test_layout(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    base = tmp_path / "clusters" / "c1" / "default" / "is1"

    assert folder.model_config(CLUSTER, KEY) == base / "model-list.json"
    assert folder.model_cache(CLUSTER, KEY) == base / "cache"
    assert folder.replica(CLUSTER, KEY, ReplicaName("r-0")) == base / "replicas" / "r-0"


def test_empty_folders_are_removed_up_to_the_data_folder(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    one = folder.replicas(CLUSTER, KEY)
    one.mkdir(parents=True)
    (folder.clusters / "c2").mkdir()
    folder.remove_empty(one)

    assert sorted(path.name for path in tmp_path.rglob("*")) == ["c2", "clusters"]
