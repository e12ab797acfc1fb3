"""Downloads of whole artifacts, with bounds."""

import asyncio
import errno
import os
import shutil
from collections.abc import Coroutine, Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from maserve.artifacts.layout import strip_single_folder
from maserve.artifacts.local import LocalTree
from maserve.artifacts.protocol import OnProgress, Progress
from maserve.artifacts.remote import RemoteTree
from maserve.artifacts.settings import StorageSettings
from maserve.artifacts.tree import Item, Tree
from maserve.artifacts.unpack import unpack
from maserve.artifacts.uri import ArchiveKind, ArtifactUri
from maserve.artifacts.worker import Cancel, CancelableWorker
from maserve.base.errors import Error, Invalid, NotFound, Problem, Unavailable
from maserve.host.files import make_folder


class Artifacts:
    """The `ArtifactSource` for every scheme; `async with` ends its threads."""

    def __init__(self, settings: StorageSettings) -> None:
        self._limits = settings.limits
        self._worker = CancelableWorker("artifacts", threads=settings.limits.parallel_files)
        self._local = LocalTree(self._worker)
        self._remote = RemoteTree(settings, self._worker)

    async def __aenter__(self) -> Self:
        await self._worker.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._worker.__aexit__(kind, error, trace)

    async def check_exists(self, uri: ArtifactUri) -> None:
        """Return if there is something to download."""
        tree = self._tree(uri)
        try:
            async with asyncio.timeout(self._limits.check_timeout_s):
                if uri.archive or uri.is_web:
                    await _get_archive(tree, uri)
                elif not await tree.has_items(uri):
                    raise await _nothing_there(tree, uri)
        except TimeoutError as error:
            waited = f"{self._limits.check_timeout_s:g} s"
            raise Unavailable(f"{uri}: no answer within {waited}") from error

    async def download(self, uri: ArtifactUri, into: Path, on_progress: OnProgress) -> None:
        """Put the artifact's files below `into`; `<into>.archive` exists while one is unpacked."""
        if uri.archive or uri.is_web:
            await self._download_archive(uri, into, on_progress)
        else:
            await self._download_folder(uri, into, on_progress)

    async def _download_archive(
        self, uri: ArtifactUri, into: Path, on_progress: OnProgress
    ) -> None:
        tree = self._tree(uri)
        item, kind = await _get_archive(tree, uri)
        if item.size_bytes > self._limits.max_bytes:
            allowed = self._limits.max_bytes
            raise Invalid(Problem("artifact", f"{uri} is bigger than the allowed {allowed} bytes"))
        archive = into.with_name(f"{into.name}.archive")
        meter = _Meter(item.size_bytes, self._limits.max_bytes, uri, on_progress)
        try:
            await self._worker.run(lambda _: make_folder(into.parent))
            await self._worker.run(lambda _: _check_room(uri, item.size_bytes, into.parent))
            await tree.fetch(uri, item, archive, meter.add)
            meter.check_whole()
            await self._worker.run(lambda cancel: self._unpack(archive, kind, into, cancel))
        finally:
            await self._worker.run(lambda _: archive.unlink(missing_ok=True))

    def _unpack(self, archive: Path, kind: ArchiveKind, into: Path, cancel: Cancel) -> None:
        unpack(archive, kind, into, self._limits, cancel)
        strip_single_folder(into)

    async def _download_folder(self, uri: ArtifactUri, into: Path, on_progress: OnProgress) -> None:
        tree = self._tree(uri)
        items = await tree.list_items(uri, self._limits)
        if not items:
            raise await _nothing_there(tree, uri)
        total = sum(item.size_bytes for item in items)
        meter = _Meter(total, self._limits.max_bytes, uri, on_progress)
        await self._worker.run(lambda _: _make_folders(into, items))
        await self._worker.run(lambda _: _check_room(uri, total, into))
        gate = asyncio.Semaphore(self._limits.parallel_files)

        async def fetch(item: Item) -> None:
            async with gate:
                await tree.fetch(uri, item, into.joinpath(*item.path.parts), meter.add)

        await _all_or_first_error([fetch(item) for item in items])
        meter.check_whole()

    def _tree(self, uri: ArtifactUri) -> Tree:
        return self._local if uri.scheme == "file" else self._remote


class _Meter:
    """Counts what arrives: announces it and ends a download that brings more than was announced."""

    def __init__(self, total: int, limit: int, uri: ArtifactUri, on_progress: OnProgress) -> None:
        self._total = total
        self._limit = limit
        self._uri = uri
        self._on_progress = on_progress
        self._done = 0

    def add(self, size_bytes: int) -> None:
        self._done += size_bytes
        if self._done > self._limit:
            text = f"{self._uri} brings more than the allowed {self._limit} bytes"
            raise Invalid(Problem("artifact", text))
        self._on_progress(Progress(bytes_done=self._done, bytes_total=self._total))

    def check_whole(self) -> None:
        """Raise `Unavailable` when it is not what was listed: it changes at its source."""
        if self._done != self._total:
            counts = f"{self._done} bytes came of {self._total}"
            raise Unavailable(f"{self._uri} changed while it was read: {counts}")


async def _get_archive(tree: Tree, uri: ArtifactUri) -> tuple[Item, ArchiveKind]:
    kind = uri.archive
    if kind is None:
        known = ", ".join(ArchiveKind)
        text = f"{uri} is no archive: over http(s) only {known} can be had, not folders"
        raise Invalid(Problem("artifact", text))
    item = await tree.find_file(uri)
    if item is None:
        raise NotFound("artifact", uri)
    return item, kind


async def _nothing_there(tree: Tree, uri: ArtifactUri) -> Error:
    """Tell nothing at all from one file where a folder should be."""
    if await tree.find_file(uri) is None:
        return NotFound("artifact", uri, "there is no file below it")
    known = ", ".join(ArchiveKind)
    return Invalid(Problem("artifact", f"{uri} is one file; give a model's folder or a {known}"))


async def _all_or_first_error(parts: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Await all; the first failure cancels the rest and is raised alone."""
    try:
        async with asyncio.TaskGroup() as group:
            for part in parts:
                group.create_task(part)
    except* Error as errors:
        raise _first(errors) from errors


def _first(group: BaseExceptionGroup[Error]) -> Error:
    error = group.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error


def _check_room(uri: ArtifactUri, size_bytes: int, folder: Path) -> None:
    """Refuse to begin what cannot fit: a disk that is filled hurts all who write to it."""
    free = shutil.disk_usage(folder).free
    if size_bytes > free:
        counts = f"{size_bytes} bytes are needed below {folder}, {free} are free"
        raise Unavailable(f"{uri}: {os.strerror(errno.ENOSPC)}: {counts}; free some space")


def _make_folders(into: Path, items: tuple[Item, ...]) -> None:
    for folder in sorted({into.joinpath(*item.path.parts).parent for item in items} | {into}):
        make_folder(folder)
