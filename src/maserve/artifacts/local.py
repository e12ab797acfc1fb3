"""Artifacts in this machine's own files."""

import errno
import os
import stat
from pathlib import Path, PurePosixPath

from maserve.artifacts.settings import Limits
from maserve.artifacts.tree import Collector, Item, OnBytes
from maserve.artifacts.uri import ArtifactUri
from maserve.artifacts.worker import Cancel, CancelableWorker
from maserve.base.errors import Denied, Error, Invalid, NotFound, Problem, Unavailable

_CHUNK_BYTES = 4 * 1024 * 1024
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)


class LocalTree:
    """`file://`. Links are followed as long as they stay inside the artifact's own folder."""

    def __init__(self, worker: CancelableWorker) -> None:
        self._worker = worker

    async def find_file(self, uri: ArtifactUri) -> Item | None:
        return await self._worker.run(lambda _: _find_file(uri))

    async def has_items(self, uri: ArtifactUri) -> bool:
        return await self._worker.run(lambda _: _has_items(uri))

    async def list_items(self, uri: ArtifactUri, limits: Limits) -> tuple[Item, ...]:
        return await self._worker.run(lambda cancel: _list_items(uri, limits, cancel))

    async def fetch(self, uri: ArtifactUri, item: Item, into: Path, on_bytes: OnBytes) -> None:
        await self._worker.run(lambda cancel: _copy(uri, Path(item.source), into, on_bytes, cancel))


def _find_file(uri: ArtifactUri) -> Item | None:
    path = Path(uri.path)
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _translated(error, uri) from error
    if not stat.S_ISREG(status.st_mode):
        return None
    return Item(path=PurePosixPath(path.name), source=uri.path, size_bytes=status.st_size)


def _has_items(uri: ArtifactUri) -> bool:
    try:
        return any(files for _, _, files in os.walk(uri.path, onerror=_raise))
    except NotADirectoryError:
        return False
    except OSError as error:
        raise _translated(error, uri) from error


def _list_items(uri: ArtifactUri, limits: Limits, cancel: Cancel) -> tuple[Item, ...]:
    collector = Collector(uri, limits)
    try:
        root = Path(uri.path).resolve(strict=True)
        for folder, folders, files in os.walk(root, onerror=_raise):
            cancel.check()
            _refuse_links(uri, root, Path(folder), folders)
            for name in files:
                path = Path(folder) / name
                _check_inside(uri, root, path)
                relative = path.relative_to(root).as_posix()
                collector.add(relative, str(path), path.stat().st_size)
    except OSError as error:
        raise _translated(error, uri) from error
    return collector.items()


def _refuse_links(uri: ArtifactUri, root: Path, folder: Path, names: list[str]) -> None:
    """Refuse linked folders: following them may never end, and leaving them out would be silent."""
    for name in names:
        if (folder / name).is_symlink():
            where = (folder / name).relative_to(root)
            raise Invalid(Problem("artifact", f"{uri} holds {str(where)!r}, a link to a folder"))


def _check_inside(uri: ArtifactUri, root: Path, path: Path) -> None:
    where = str(path.relative_to(root))
    if path.is_symlink() and not path.resolve().is_relative_to(root):
        raise Invalid(Problem("artifact", f"{uri} holds {where!r}, a link out of its folder"))
    if not path.is_file():
        raise Invalid(Problem("artifact", f"{uri} holds {where!r}, which is no readable file"))


def _copy(uri: ArtifactUri, source: Path, into: Path, on_bytes: OnBytes, cancel: Cancel) -> None:
    try:
        with source.open("rb") as content, into.open("xb") as file:
            while chunk := content.read(_CHUNK_BYTES):
                cancel.check()
                file.write(chunk)
                on_bytes(len(chunk))
    except OSError as error:
        if error.errno in _NO_SPACE:
            raise Unavailable(f"{uri}: {into}: {error.strerror}; free some space") from error
        raise _translated(error, uri) from error


def _raise(error: OSError) -> None:
    raise error


def _translated(error: OSError, uri: ArtifactUri) -> Error:
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return NotFound("artifact", uri)
    if isinstance(error, PermissionError):
        return Denied(f"{uri}: {error.filename or uri.path} cannot be read: {error.strerror}")
    return Unavailable(f"{uri}: {error.filename or uri.path}: {error.strerror or error}")
