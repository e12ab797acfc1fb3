"""A log whose disk is full loses lines and nothing else."""

from pathlib import Path

from maserve.host import lossy


def test_lines_are_written_at_once(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with path.open("ab", buffering=0) as file:
        assert lossy(file.fileno()).write("one\n") == 4
        assert path.read_text() == "one\n"


def test_lines_that_find_no_space_are_lost() -> None:
    with Path("/dev/full").open("wb", buffering=0) as file:
        log = lossy(file.fileno())
        assert log.write("one\n") == 4
        log.flush()
