"""What `maserve logs` reads: whole lines, each once, the last ones or all."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from maserve.base.errors import Invalid
from maserve.base.keys import ClusterId, Key
from maserve.cmd.replica_logs import ReplicaLogs
from maserve.host import DataFolder
from maserve.wire import ext, meta, v2

SERVER = v2.InferenceServer(
    metadata=meta.ObjectMeta(namespace="ns", name="s"),
    spec=v2.InferenceServerSpec(cluster_targets=[v2.ClusterTarget(cluster_id="c1")]),
)


@pytest.fixture
def folder(tmp_path: Path) -> DataFolder:
    return DataFolder(tmp_path)


def a_log(folder: DataFolder, text: str, *, replica: str = "r-0", file: str = "engine.log") -> Path:
    home = folder.replicas(ClusterId("c1"), Key("ns", "s")) / replica
    home.mkdir(parents=True, exist_ok=True)
    (home / file).write_text(text)
    return home / file


def logs(folder: DataFolder, **asked: object) -> ReplicaLogs:
    return ReplicaLogs(folder, SERVER, ext.LogsRequest(**asked))  # type: ignore[arg-type]


def texts(answers: Iterable[ext.LogsResponse]) -> list[str]:
    return [answer.line for answer in answers]


def test_the_last_lines_of_each_file_are_read(folder: DataFolder) -> None:
    a_log(folder, "one\ntwo\nthree\n")
    a_log(folder, "four\n", file="model-sync.log")
    found = [(each.process, each.line) for each in logs(folder, tail_lines=2).last()]
    assert found == [("engine", "two"), ("engine", "three"), ("model-sync", "four")]


def test_no_number_means_all_lines(folder: DataFolder) -> None:
    a_log(folder, "".join(f"{number}\n" for number in range(200_000)))
    found = texts(logs(folder).last())
    assert (len(found), found[0], found[-1]) == (200_000, "0", "199999")


def test_a_line_that_was_never_ended_is_shown(folder: DataFolder) -> None:
    a_log(folder, "one\nSegmentation fa")
    assert texts(logs(folder, tail_lines=1).last()) == ["Segmentation fa"]
    assert texts(logs(folder).last()) == ["one", "Segmentation fa"]


def test_following_gives_each_line_once_and_whole(folder: DataFolder) -> None:
    path = a_log(folder, "one\ntw")
    followed = logs(folder, follow=True, tail_lines=5)
    assert texts(followed.last()) == ["one"]
    with path.open("a") as file:
        file.write("o\nthree\n")
    assert texts(followed.new()) == ["two", "three"]
    assert texts(followed.new()) == []


def test_following_finds_replicas_that_come_later(folder: DataFolder) -> None:
    a_log(folder, "one\n")
    followed = logs(folder, follow=True)
    assert texts(followed.last()) == ["one"]
    a_log(folder, "two\n", replica="r-1")
    assert [(each.replica, each.line) for each in followed.new()] == [("r-1", "two")]


def test_a_file_that_was_cut_is_read_from_its_start(folder: DataFolder) -> None:
    path = a_log(folder, "one\ntwo\n")
    followed = logs(folder, follow=True)
    assert texts(followed.last()) == ["one", "two"]
    path.write_text("new\n")
    assert texts(followed.new()) == ["new"]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"cluster_id": "c9"}, "cluster 'c9' is not there; there are: c1"),
        ({"replica": "r-9"}, "replica 'r-9' is not there; there are: r-0"),
        ({"process": "envoy"}, "process 'envoy' is not there; there are: engine, model-sync"),
    ],
)
def test_what_the_server_does_not_have_is_named(
    folder: DataFolder, asked: dict[str, str], said: str
) -> None:
    a_log(folder, "one\n")
    with pytest.raises(Invalid, match=said):
        texts(logs(folder, **asked).last())
