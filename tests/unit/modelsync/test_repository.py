from datetime import UTC, datetime
from pathlib import Path

import pytest

from maserve.artifacts.pbtxt import parse_config_text
from maserve.base.errors import Invalid, Unavailable
from maserve.base.keys import ModelName
from maserve.modelsync.repository import Repository

M = ModelName("m")
NOW = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "models", cache=tmp_path / "cache", private=tmp_path / ".private")
    made.ensure()
    return made


def test_link_is_relative_and_read_back(repository: Repository, tmp_path: Path) -> None:
    repository.link(M, "c1", NOW)
    assert (tmp_path / "models/m").readlink() == Path("../cache/c1/model")
    assert repository.linked() == {M: "c1"}


def test_link_is_replaced_in_place(repository: Repository, tmp_path: Path) -> None:
    (tmp_path / "cache/c2/model/1").mkdir(parents=True)
    repository.link(M, "c1", NOW)
    repository.link(M, "c2", NOW)
    assert repository.linked() == {M: "c2"}


def test_content_that_is_not_there_replaces_nothing(repository: Repository) -> None:
    repository.link(M, "c1", NOW)
    with pytest.raises(Unavailable, match="cannot date"):
        repository.link(M, "c2", NOW)
    assert repository.linked() == {M: "c1"}


@pytest.mark.parametrize("reason", ['say "no"', "back\\slash", "two\nlines", "ü", "x" * 5000])
def test_stand_in_is_well_formed_whatever_the_reason(
    repository: Repository, tmp_path: Path, reason: str
) -> None:
    repository.link_failure(M, reason)
    assert repository.linked() == {M: ""}
    text = (tmp_path / "models/m/config.pbtxt").read_text()
    assert parse_config_text(text).fault == ""
    assert len(text) < 1000


def test_removal_takes_stand_in_and_link(repository: Repository, tmp_path: Path) -> None:
    repository.link_failure(M, "why")
    repository.remove(M)
    assert repository.linked() == {}
    assert not (tmp_path / ".private/failed/m").exists()


def test_folders_and_links_of_others_are_neither_seen_nor_removed(
    repository: Repository, tmp_path: Path
) -> None:
    (tmp_path / "models/folder").mkdir()
    (tmp_path / "models/link").symlink_to("/srv/model")
    repository.remove(ModelName("folder"))
    assert repository.linked() == {}
    assert (tmp_path / "models/folder").exists()
    with pytest.raises(Invalid, match="by somebody else"):
        repository.link(ModelName("folder"), "c1", NOW)
