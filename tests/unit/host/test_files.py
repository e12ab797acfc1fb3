import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from maserve.base.errors import Invalid, Unavailable
from maserve.host import (
    find_bytes,
    find_json,
    make_folder,
    read_log_from,
    remove_file,
    remove_tree,
    tail_log,
    write_atomically,
    write_json,
)
from maserve.host.files import remove_empty_folders
from maserve.host.logs import cap_log


def test_what_was_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "state.json"
    write_json(path, {"b": 1, "a": [2]})

    assert find_json(path) == {"a": [2], "b": 1}
    assert [one.name for one in path.parent.iterdir()] == ["state.json"]


def test_full_disk_is_unavailable_names_the_path_and_keeps_the_old_content(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    path.write_text("old")
    (tmp_path / f".state.json.{os.getpid()}.tmp").symlink_to("/dev/full")
    with pytest.raises(Unavailable, match=r"cannot write .*/state\.json: No space left on device"):
        write_atomically(path, b"new")

    assert path.read_text() == "old"
    assert [one.name for one in tmp_path.iterdir()] == ["state.json"]


def test_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "folder"
    (target / "inside").mkdir(parents=True)
    with pytest.raises(Unavailable, match="cannot write"):
        write_atomically(target, b"new")

    assert [one.name for one in tmp_path.iterdir()] == ["folder"]


def test_absent_is_none_and_broken_is_invalid(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    assert find_json(path) is None
    assert find_bytes(path / "below") is None
    path.write_text("{")
    with pytest.raises(Invalid, match=r"state\.json is not JSON"):
        find_json(path)


def test_folder_read_as_file_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="cannot read"):
        find_bytes(tmp_path)


def test_removing_what_is_absent_is_success(tmp_path: Path) -> None:
    remove_file(tmp_path / "nothing")
    remove_tree(tmp_path / "nothing")


def test_removing_takes_what_a_killed_writer_left(tmp_path: Path) -> None:
    kept = [tmp_path / ".a[1].b.tmp", tmp_path / ".ab.7.tmp"]
    left = [tmp_path / ".a[1].7.tmp", tmp_path / ".a[1].12345.tmp"]
    for path in (*kept, *left):
        path.write_text("")
    remove_file(tmp_path / "a[1]")
    assert sorted(tmp_path.iterdir()) == sorted(kept)


def test_removing_a_folder_as_file_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="cannot remove"):
        remove_file(tmp_path)


def test_tail_gives_the_last_lines(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("one\ntwo\nthree\n")

    assert tail_log(log, 2) == ("two", "three")
    assert tail_log(log, 0) == ()
    assert tail_log(tmp_path / "none", 2) == ()


def test_log_is_read_from_an_offset_or_whole_once_it_was_cut(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("one\ntwo\n")

    assert read_log_from(log, 4) == "two\n"
    assert read_log_from(log, 400) == "one\ntwo\n"
    assert read_log_from(tmp_path / "none", 0) == ""


def test_log_is_cut_once_it_is_too_large(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("x" * 10 + "y" * 10)
    assert not cap_log(log, 20)
    assert cap_log(log, 10)

    assert log.read_text() == ""
    assert (tmp_path / "a.log.1").read_text() == "y" * 10


def test_log_is_cut_on_a_full_disk_too(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("x" * 20)
    (tmp_path / "a.log.1").symlink_to("/dev/full")

    assert cap_log(log, 10)
    assert [(one.name, one.stat().st_size) for one in tmp_path.iterdir()] == [("a.log", 0)]


def test_folders_with_one_parent_are_made_and_removed_at_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor(max_workers=2) as threads:
        work = [threads.submit(come_and_go, tmp_path, name) for name in ("one", "two")]

    assert [each.result() for each in work] == [None, None]
    assert list(tmp_path.iterdir()) == []


def come_and_go(root: Path, name: str) -> None:
    for _ in range(1000):
        folder = root / "cluster" / "namespace" / name
        make_folder(folder)
        remove_empty_folders(folder, stop=root)
