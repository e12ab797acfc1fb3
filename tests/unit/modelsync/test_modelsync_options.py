from pathlib import Path

import pytest

from maserve.base.errors import Invalid
from maserve.cmd.modelsync import parse_options

REQUIRED = (
    "--replica=r0",
    "--config=/data/model-list.json",
    "--repository=/data/r0/models",
    "--cache=/data/cache",
    "--engine-url=http://127.0.0.1:8000",
    "--engine-grpc=127.0.0.1:8001",
    "--readiness=/data/r0/readiness.json",
)


def test_places_are_derived_from_the_given_ones() -> None:
    sync = parse_options(REQUIRED, {}).sync
    assert sync.list_lock == Path("/data/model-list.json.lock")
    assert sync.private == Path("/data/r0/.models.model-sync")
    assert sync.status_file == Path("/data/r0/model-sync-status.json")
    assert sync.unload_grace_s == 2.0


def test_places_are_told_apart_however_they_are_named(tmp_path: Path) -> None:
    (tmp_path / "volume" / "data").mkdir(parents=True)
    (tmp_path / "link").symlink_to("volume/data")
    data = tmp_path / "link" / ".." / "data"
    sync = parse_options((*REQUIRED, f"--repository={data}/models", f"--cache={data}/c"), {}).sync
    assert sync.repository == tmp_path / "volume/data/models"
    assert sync.cache == tmp_path / "volume/data/c"
    assert sync.private == tmp_path / "volume/data/.models.model-sync"


def test_mounted_config_map_has_no_lock(tmp_path: Path) -> None:
    assert parse_options((*REQUIRED, f"--config={tmp_path}"), {}).sync.list_lock is None


@pytest.mark.parametrize(
    ("text", "seconds"), [("150s", 150.0), ("2.5", 2.5), ("0", 0.0), ("1m30s", 90.0)]
)
def test_grace_is_a_duration_or_seconds(text: str, seconds: float) -> None:
    assert parse_options((*REQUIRED, f"--unload-grace={text}"), {}).sync.unload_grace_s == seconds


def test_storage_comes_from_the_variables() -> None:
    assert parse_options(REQUIRED, {"AWS_REGION": "eu-west-1"}).storage.s3.region == "eu-west-1"


def test_every_problem_is_reported() -> None:
    with pytest.raises(Invalid) as caught:
        parse_options(
            (
                *REQUIRED,
                "--engine-url=localhost",
                "--engine-grpc=localhost",
                "--poll=0",
                "--load-timeout=soon",
                "--parallel-downloads=0",
            ),
            {"AWS_ENDPOINT_URL": "minio"},
        )
    fields = [problem.field for problem in caught.value.problems]
    assert sorted(fields) == [
        "--engine-grpc",
        "--engine-url",
        "--load-timeout",
        "--parallel-downloads",
        "--poll",
        "AWS_ENDPOINT_URL",
    ]
