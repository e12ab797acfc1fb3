import asyncio
import os
import shutil
import tarfile
from pathlib import Path

import pytest

from maserve.artifacts import Artifacts, ArtifactUri, Limits, Progress, StorageSettings
from maserve.base.errors import Invalid, NotFound, Unavailable

SMALL = StorageSettings(limits=Limits(max_files=5, max_bytes=1000))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "models" / "m"
    (folder / "1").mkdir(parents=True)
    (folder / "1" / "model.py").write_text("code")
    (folder / "config.pbtxt").write_text('name: "m"')
    return folder


def uri(path: Path) -> ArtifactUri:
    return ArtifactUri.parse(path.as_uri())


def ignore(progress: Progress) -> None: ...


async def download(source: Path, into: Path, settings: StorageSettings = SMALL) -> None:
    async with Artifacts(settings) as artifacts:
        await artifacts.download(uri(source), into, ignore)


async def check(source: Path) -> None:
    async with Artifacts(SMALL) as artifacts:
        await artifacts.check_exists(uri(source))


async def test_folder_is_copied_with_progress(model: Path, tmp_path: Path) -> None:
    seen: list[Progress] = []
    async with Artifacts(SMALL) as artifacts:
        await artifacts.download(uri(model), tmp_path / "new" / "into", seen.append)
    assert (tmp_path / "new/into/1/model.py").read_text() == "code"
    assert (seen[-1].bytes_done, seen[-1].bytes_total) == (13, 13)


async def test_archive_is_unpacked_and_its_top_folder_stripped(model: Path, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "m.tar.gz", "w:gz") as tar:
        tar.add(model, "digits")
    await download(tmp_path / "m.tar.gz", tmp_path / "into")
    assert (tmp_path / "into/1/model.py").read_text() == "code"
    assert not (tmp_path / "into.archive").exists()


async def test_copy_is_newer_than_its_source_time(model: Path, tmp_path: Path) -> None:
    await download(model, tmp_path / "into")
    copied = (tmp_path / "into/1/model.py").stat().st_mtime_ns
    assert copied > (model / "1/model.py").stat().st_mtime_ns


async def test_missing_artifact_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"artifact file:///.*/none not found"):
        await download(tmp_path / "none", tmp_path / "into")


async def test_missing_archive_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        await download(tmp_path / "none.tar", tmp_path / "into")


async def test_existing_artifact_passes_the_check(model: Path) -> None:
    await check(model)


async def test_empty_folder_does_not_exist(tmp_path: Path) -> None:
    (tmp_path / "empty" / "1").mkdir(parents=True)
    with pytest.raises(NotFound, match="there is no file below it"):
        await check(tmp_path / "empty")


async def test_missing_folder_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        await check(tmp_path / "none")


async def test_single_file_says_what_is_wanted(model: Path) -> None:
    with pytest.raises(Invalid, match=r"is one file; give a model's folder or a \.tar, "):
        await check(model / "config.pbtxt")


async def test_web_folder_is_refused_clearly() -> None:
    async with Artifacts(SMALL) as artifacts:
        with pytest.raises(Invalid, match=r"over http\(s\) only \.tar, "):
            await artifacts.check_exists(ArtifactUri.parse("http://127.0.0.1:1/models/m"))


async def test_too_many_files_are_refused(model: Path, tmp_path: Path) -> None:
    few = StorageSettings(limits=Limits(max_files=1))
    with pytest.raises(Invalid, match="more than the allowed 1 files"):
        await download(model, tmp_path / "into", few)


async def test_too_many_bytes_are_refused(model: Path, tmp_path: Path) -> None:
    (model / "1" / "weights").write_bytes(b"0" * 2000)
    with pytest.raises(Invalid, match="more than the allowed 1000 bytes"):
        await download(model, tmp_path / "into")


async def test_what_does_not_fit_on_the_disk_is_not_begun(model: Path, tmp_path: Path) -> None:
    size = shutil.disk_usage(tmp_path).free + (1 << 30)
    (model / "1" / "weights").touch()
    os.truncate(model / "1" / "weights", size)
    big = StorageSettings(limits=Limits(max_bytes=1 << 60))
    with pytest.raises(Unavailable, match=r"No space left on device: \d+ bytes are needed"):
        await download(model, tmp_path / "into", big)
    assert [path for path in (tmp_path / "into").rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("target", ["/etc", "..", "1"])
async def test_linked_folder_is_refused(model: Path, tmp_path: Path, target: str) -> None:
    (model / "link").symlink_to(target)
    with pytest.raises(Invalid, match="'link', a link to a folder"):
        await download(model, tmp_path / "into")


async def test_link_out_of_the_folder_is_refused(model: Path, tmp_path: Path) -> None:
    (model / "passwd").symlink_to("/etc/passwd")
    with pytest.raises(Invalid, match="'passwd', a link out of its folder"):
        await download(model, tmp_path / "into")


async def test_link_inside_is_copied_as_a_file(model: Path, tmp_path: Path) -> None:
    (model / "same.py").symlink_to("1/model.py")
    await download(model, tmp_path / "into")
    assert not (tmp_path / "into/same.py").is_symlink()
    assert (tmp_path / "into/same.py").read_text() == "code"


async def test_place_that_cannot_be_written_is_unavailable(model: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Unavailable, match=r"cannot make .*/file/into"):
        await download(model, tmp_path / "file" / "into")


async def test_unreachable_storage_is_unavailable(tmp_path: Path) -> None:
    fast = Limits(retries=0, connect_timeout_s=1)
    async with Artifacts(StorageSettings(limits=fast)) as artifacts:
        with pytest.raises(Unavailable, match=r"http://127\.0\.0\.1:1/m\.tar\?…: "):
            await artifacts.check_exists(ArtifactUri.parse("http://127.0.0.1:1/m.tar?sig=secret"))


async def test_silent_storage_is_unavailable_in_time() -> None:
    accepted: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(lambda _, writer: accepted.append(writer), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with Artifacts(StorageSettings(limits=Limits(check_timeout_s=0.1))) as artifacts:
        with pytest.raises(Unavailable, match=r"no answer within 0\.1 s"):
            await artifacts.check_exists(ArtifactUri.parse(f"http://127.0.0.1:{port}/m.tar"))
    accepted[0].close()
    server.close()


async def test_cancelled_download_lets_go_of_its_files(model: Path, tmp_path: Path) -> None:
    async with Artifacts(SMALL) as artifacts, asyncio.TaskGroup() as group:
        task = group.create_task(artifacts.download(uri(model), tmp_path / "into", ignore))
        await asyncio.sleep(0)
        task.cancel()
    assert task.cancelled()
