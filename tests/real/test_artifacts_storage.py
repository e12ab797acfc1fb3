"""Artifacts through a real S3 protocol server and a real HTTP server, on loopback."""

import logging
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import boto3  # type: ignore[import-untyped]  # has no stubs
import pytest
from aiohttp import web
from moto.server import ThreadedMotoServer

from maserve.artifacts import (
    Artifacts,
    ArtifactUri,
    Limits,
    Progress,
    S3Settings,
    StorageSettings,
    parse_storage_settings,
    storage_environment,
)
from maserve.base.errors import Denied, Invalid, NotFound, Unavailable
from maserve.testing.stored_models import BUCKET, a_tar, build_objects, ignore_progress, list_files

# A server process thread and the first import of the S3 server's modules.
pytestmark = [pytest.mark.real, pytest.mark.timeout(30)]


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # noqa: TID251 - its own logger
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(scope="module")
def settings(endpoint: str) -> StorageSettings:
    s3 = S3Settings(
        endpoint=endpoint, access_key_id="key", secret_access_key="secret", allow_http=True
    )
    return StorageSettings(s3=s3, limits=Limits(max_files=50, max_bytes=100_000, retries=0))


@pytest.fixture(scope="module", autouse=True)
def objects(endpoint: str) -> None:
    client = boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="key",
        aws_secret_access_key="secret",
    )
    client.create_bucket(Bucket=BUCKET)
    files = {
        **build_objects(),
        "marker/": b"",
        "climbs//1/x": b"",
        "clash/1": b"file",
        "clash/1/model.py": b"code",
        "big/1/weights": b"0" * 200_000,
    } | {f"many/1/{number}": b"" for number in range(60)}
    for key, body in files.items():
        client.put_object(Bucket=BUCKET, Key=key, Body=body)


def s3(path: str) -> ArtifactUri:
    return ArtifactUri.parse(f"s3://{BUCKET}/{path}")


async def test_prefix_is_downloaded_with_everything_below_it(
    settings: StorageSettings, tmp_path: Path
) -> None:
    seen: list[Progress] = []
    async with Artifacts(settings) as artifacts:
        await artifacts.download(s3("m1/"), tmp_path / "into", seen.append)
    assert list_files(tmp_path / "into") == ["1/model.py", "config.pbtxt"]
    assert (seen[-1].bytes_done, seen[-1].bytes_total) == (14, 14)


async def test_archive_is_downloaded_and_unpacked(
    settings: StorageSettings, tmp_path: Path
) -> None:
    async with Artifacts(settings) as artifacts:
        await artifacts.download(s3("m2.tar.gz"), tmp_path / "into", ignore_progress)
    assert list_files(tmp_path) == ["into/1/model.py"]


@pytest.mark.parametrize("path", ["m1/", "m1", "m2.tar.gz"])
async def test_what_is_there_passes_the_check(settings: StorageSettings, path: str) -> None:
    async with Artifacts(settings) as artifacts:
        await artifacts.check_exists(s3(path))


@pytest.mark.parametrize("path", ["none/", "none.tar", "m", "marker/"])
async def test_what_is_not_there_is_not_found(settings: StorageSettings, path: str) -> None:
    async with Artifacts(settings) as artifacts:
        with pytest.raises(NotFound, match="artifact s3://models/"):
            await artifacts.check_exists(s3(path))


async def test_missing_bucket_is_not_found(settings: StorageSettings, tmp_path: Path) -> None:
    uri = ArtifactUri.parse("s3://nowhere/m1/")
    async with Artifacts(settings) as artifacts:
        with pytest.raises(NotFound, match="s3://nowhere/m1"):
            await artifacts.download(uri, tmp_path / "into", ignore_progress)


@pytest.mark.parametrize(
    ("path", "needle"),
    [
        ("one.onnx", "is one file; give a model's folder"),
        ("many/", "more than the allowed 50 files"),
        ("big/", "more than the allowed 100000 bytes"),
        ("climbs/", "whose path cannot be"),
        ("clash/", "holds '1' both as a file and as a folder"),
    ],
)
async def test_what_cannot_be_a_model_is_refused(
    settings: StorageSettings, tmp_path: Path, path: str, needle: str
) -> None:
    async with Artifacts(settings) as artifacts:
        with pytest.raises(Invalid, match=needle):
            await artifacts.download(s3(path), tmp_path / "into", ignore_progress)


async def test_unreachable_storage_is_unavailable() -> None:
    nowhere = S3Settings(
        endpoint="http://127.0.0.1:1", access_key_id="k", secret_access_key="s", allow_http=True
    )
    settings = StorageSettings(s3=nowhere, limits=Limits(retries=0))
    async with Artifacts(settings) as artifacts:
        with pytest.raises(Unavailable, match="s3://models/m1: "):
            await artifacts.check_exists(s3("m1/"))


async def test_settings_survive_their_way_through_an_environment(
    settings: StorageSettings, tmp_path: Path
) -> None:
    again = parse_storage_settings(storage_environment(settings), settings.limits)
    assert again == settings


@pytest.fixture
async def web_server() -> AsyncIterator[str]:
    async def answer(request: web.Request) -> web.Response:
        if request.path == "/denied.tar":
            return web.Response(status=403)
        if request.path == "/signed.tar.gz" and request.query.get("sig") == "good":
            return web.Response(body=a_tar())
        return web.Response(status=404)

    app = web.Application()
    app.router.add_route("*", "/{name}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    yield f"http://{host}:{port}"
    await runner.cleanup()


async def test_signed_web_archive_is_downloaded(web_server: str, tmp_path: Path) -> None:
    uri = ArtifactUri.parse(f"{web_server}/signed.tar.gz?sig=good")
    async with Artifacts(StorageSettings(limits=Limits(retries=0))) as artifacts:
        await artifacts.check_exists(uri)
        await artifacts.download(uri, tmp_path / "into", ignore_progress)
    assert list_files(tmp_path) == ["into/1/model.py"]


async def test_denied_is_told_apart_and_hides_the_signature(web_server: str) -> None:
    uri = ArtifactUri.parse(f"{web_server}/denied.tar?sig=secret")
    async with Artifacts(StorageSettings(limits=Limits(retries=0))) as artifacts:
        with pytest.raises(Denied, match="access denied") as caught:
            await artifacts.check_exists(uri)
    assert "secret" not in str(caught.value)


async def test_missing_web_archive_is_not_found(web_server: str) -> None:
    async with Artifacts(StorageSettings(limits=Limits(retries=0))) as artifacts:
        with pytest.raises(NotFound):
            await artifacts.check_exists(ArtifactUri.parse(f"{web_server}/none.zip"))
