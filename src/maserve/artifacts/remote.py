"""Artifacts in object storage and behind http(s), through obstore."""

import re
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path, PurePosixPath
from typing import Any

import obstore
from obstore.exceptions import (
    BaseError,
    InvalidPathError,
    PermissionDeniedError,
    UnauthenticatedError,
)
from obstore.store import AzureStore, GCSStore, HTTPStore, ObjectStore, S3Store

from maserve.artifacts.settings import Limits, StorageSettings
from maserve.artifacts.tree import Collector, Item, OnBytes
from maserve.artifacts.uri import ArtifactUri
from maserve.artifacts.worker import CancelableWorker
from maserve.base.errors import Denied, Error, Invalid, NotFound, Problem, Unavailable

_CHUNK_BYTES = 4 * 1024 * 1024
_STATUS = re.compile(r"non-2xx status code: (\d{3})")
_QUERY = re.compile(r"\?\S+")
_MAX_TEXT = 300

Options = Any
"""The option dictionaries of obstore, whose classes exist for type checkers only."""


class RemoteTree:
    """`s3://`, `gs://`, `az://`, `http(s)://`."""

    def __init__(self, settings: StorageSettings, worker: CancelableWorker) -> None:
        self._settings = settings
        self._worker = worker

    async def find_file(self, uri: ArtifactUri) -> Item | None:
        try:
            store = _build_store(uri, self._settings)
            if uri.is_web:  # a signed address is often signed for GET alone; the body is not read
                meta = (await obstore.get_async(store, uri.path)).meta
            else:
                meta = await obstore.head_async(store, uri.path)
        except FileNotFoundError:
            return None
        except (BaseError, ValueError, OSError) as error:
            raise _translated(error, uri) from error
        name = PurePosixPath(uri.path).name
        return Item(path=PurePosixPath(name), source=uri.path, size_bytes=meta["size"])

    async def has_items(self, uri: ArtifactUri) -> bool:
        try:
            async for page in obstore.list(_build_store(uri, self._settings), uri.path):
                if any(not _is_marker(uri, meta["path"]) for meta in page):
                    return True
        except (BaseError, ValueError, OSError) as error:
            raise _translated(error, uri) from error
        return False

    async def list_items(self, uri: ArtifactUri, limits: Limits) -> tuple[Item, ...]:
        collector = Collector(uri, limits)
        try:
            async for page in obstore.list(_build_store(uri, self._settings), uri.path):
                for meta in page:
                    if not _is_marker(uri, meta["path"]):
                        below = meta["path"].removeprefix(f"{uri.path}/")
                        collector.add(below, meta["path"], meta["size"])
        except (BaseError, ValueError, OSError) as error:
            raise _translated(error, uri) from error
        return collector.items()

    async def fetch(self, uri: ArtifactUri, item: Item, into: Path, on_bytes: OnBytes) -> None:
        try:
            answer = await obstore.get_async(_build_store(uri, self._settings), item.source)
            async with self._opened(into) as write:
                async for chunk in answer.stream(min_chunk_size=_CHUNK_BYTES):
                    await write(chunk)
                    on_bytes(len(chunk))
        except (BaseError, ValueError) as error:
            raise _translated(error, uri) from error
        except OSError as error:
            raise _translated_disk(error, uri, into) from error

    @asynccontextmanager
    async def _opened(
        self, path: Path
    ) -> AsyncIterator[Callable[[bytes], Coroutine[Any, Any, int]]]:
        """Give a call that writes to the new file `path` on the worker's thread."""
        file = await self._worker.run(lambda _: path.open("xb"))
        try:
            yield lambda chunk: self._worker.run(lambda _: file.write(chunk))
        finally:
            await self._worker.run(lambda _: file.close())


def _build_store(uri: ArtifactUri, settings: StorageSettings) -> ObjectStore:
    limits = settings.limits
    retry: Options = {
        "max_retries": limits.retries,
        "retry_timeout": timedelta(seconds=limits.retry_window_s),
    }
    match uri.scheme:
        case "s3":
            return _build_s3(uri.place, settings, retry)
        case "gs":
            return _build_gs(uri.place, settings, retry)
        case "az":
            return _build_az(uri.place, settings, retry)
        case _:
            query = f"?{uri.query}" if uri.query else ""
            return HTTPStore(
                f"{uri.scheme}://{uri.place}/{query}",
                client_options=_client(limits, allow_http=uri.scheme == "http"),
                retry_config=retry,
            )


def _build_s3(bucket: str, settings: StorageSettings, retry: Options) -> S3Store:
    s3 = settings.s3
    texts = {
        "endpoint": s3.endpoint,
        "region": s3.region,
        "access_key_id": s3.access_key_id,
        "secret_access_key": s3.secret_access_key,
        "session_token": s3.session_token,
    }
    return S3Store(
        bucket,
        config=_set_ones(texts),
        virtual_hosted_style_request=s3.virtual_hosted,
        skip_signature=s3.unsigned,
        client_options=_client(settings.limits, allow_http=s3.allow_http),
        retry_config=retry,
    )


def _build_gs(bucket: str, settings: StorageSettings, retry: Options) -> GCSStore:
    gs = settings.gs
    texts = {"base_url": gs.endpoint, "application_credentials": gs.credentials_file}
    return GCSStore(
        bucket,
        config=_set_ones(texts),
        skip_signature=gs.unsigned,
        client_options=_client(settings.limits, allow_http=gs.allow_http),
        retry_config=retry,
    )


def _build_az(container: str, settings: StorageSettings, retry: Options) -> AzureStore:
    az = settings.az
    texts = {
        "endpoint": az.endpoint,
        "account_name": az.account,
        "account_key": az.account_key,
        "sas_key": az.sas_token,
    }
    return AzureStore(
        container,
        config=_set_ones(texts),
        skip_signature=az.unsigned,
        client_options=_client(settings.limits, allow_http=az.allow_http),
        retry_config=retry,
    )


def _client(limits: Limits, *, allow_http: bool) -> Options:
    return {
        "allow_http": allow_http,
        "connect_timeout": timedelta(seconds=limits.connect_timeout_s),
        "read_timeout": timedelta(seconds=limits.read_timeout_s),
        "timeout": timedelta(seconds=limits.request_timeout_s),
    }


def _set_ones(texts: dict[str, str]) -> Options:
    return {key: value for key, value in texts.items() if value}


def _is_marker(uri: ArtifactUri, path: str) -> bool:
    """Tell whether it is the empty object that some tools make for the folder itself."""
    return path.rstrip("/") == uri.path


def _translated(error: Exception, uri: ArtifactUri) -> Error:
    """Turn obstore's errors into ours; only some carry their HTTP status as a type."""
    text = _plain(error)
    found = _STATUS.search(str(error))
    status = found.group(1) if found else ""
    if isinstance(error, FileNotFoundError) or status == "404":
        return NotFound("artifact", uri)
    if isinstance(error, PermissionDeniedError | UnauthenticatedError) or status in ("401", "403"):
        return Denied(f"{uri}: access denied: {text}")
    if isinstance(error, InvalidPathError):
        return Invalid(Problem("artifact", f"{uri} holds an object whose path cannot be: {text}"))
    return Unavailable(f"{uri}: {text}")


def _translated_disk(error: OSError, uri: ArtifactUri, into: Path) -> Error:
    """Tell a missing object (obstore raises the builtin, with no errno) from a refusing disk."""
    if error.errno is None:
        return _translated(error, uri)
    return Unavailable(f"{uri}: cannot write {into}: {error.strerror or error}")


def _plain(error: Exception) -> str:
    """Return the first line without signatures and XML."""
    first = str(error).strip().split("\n", 1)[0].split(": <?xml", 1)[0]
    return _QUERY.sub("?…", first)[:_MAX_TEXT]
