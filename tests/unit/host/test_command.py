from pathlib import Path

import pytest

from maserve.base.errors import Unavailable
from maserve.host import make_folder, remove_shared_memory, run_command


def test_command_gives_code_and_both_streams() -> None:
    done = run_command(
        ("/bin/sh", "-c", "echo out; echo $A >&2; exit 3"), env={"A": "err"}, timeout_s=4
    )

    assert (done.code, done.output) == (3, "out\nerr\n")


def test_command_that_is_missing_or_hangs_is_unavailable() -> None:
    with pytest.raises(Unavailable, match="cannot run /nowhere"):
        run_command(("/nowhere",), env={}, timeout_s=1)
    with pytest.raises(Unavailable, match="timed out"):
        run_command(("/bin/sleep", "9"), env={}, timeout_s=0.05)


def test_shared_memory_is_removed_by_prefix(tmp_path: Path) -> None:
    mine = Path("/dev/shm") / f"maserve-test-{tmp_path.parent.name}-1"
    mine.write_text("")

    assert remove_shared_memory(mine.name[:-1]) == 1
    assert not mine.exists()
    with pytest.raises(ValueError, match="empty prefix"):
        remove_shared_memory("")


def test_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Unavailable, match=r"cannot make .*/file/below: Not a directory"):
        make_folder(tmp_path / "file" / "below")
