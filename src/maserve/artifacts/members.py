"""The members of tar and zip archives in one form."""

import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import IO

from maserve.artifacts.uri import ArchiveKind

_MAX_LINK_BYTES = 4096


class MemberType(Enum):
    """What a member is; OTHER is a device, a pipe or anything else that is no content."""

    FILE = auto()
    FOLDER = auto()
    SYMLINK = auto()
    HARDLINK = auto()
    OTHER = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One member as the archive claims it to be; nothing here is checked.

    `target` is set for links. `open` gives the content of a FILE, valid until the next member.
    """

    name: str
    type: MemberType
    mode: int = 0o644
    target: str = ""
    open: Callable[[], IO[bytes]]


def iter_members(archive: Path, kind: ArchiveKind) -> Iterator[Member]:
    """Yield the members in their stored order. Raises what `tarfile` and `zipfile` raise."""
    if kind is ArchiveKind.ZIP:
        yield from _iter_zip(archive)
    else:
        yield from _iter_tar(archive, packed=kind is not ArchiveKind.TAR)


def _iter_tar(archive: Path, *, packed: bool) -> Iterator[Member]:
    with tarfile.open(archive, "r:gz" if packed else "r:") as tar:
        for info in tar:
            yield Member(
                name=info.name,
                type=_tar_type(info),
                mode=info.mode,
                target=info.linkname,
                open=lambda info=info: _opened(tar.extractfile(info)),  # type: ignore[misc]  # mypy cannot type a default
            )


def _tar_type(info: tarfile.TarInfo) -> MemberType:
    if info.isreg():
        return MemberType.FILE
    if info.isdir():
        return MemberType.FOLDER
    if info.issym():
        return MemberType.SYMLINK
    return MemberType.HARDLINK if info.islnk() else MemberType.OTHER


def _opened(content: IO[bytes] | None) -> IO[bytes]:
    if content is None:
        raise tarfile.ReadError("a file without content")
    return content


def _iter_zip(archive: Path) -> Iterator[Member]:
    with zipfile.ZipFile(archive) as pack:
        for info in pack.infolist():
            kind = _zip_type(info)
            yield Member(
                name=info.filename,
                type=kind,
                mode=(info.external_attr >> 16) & 0o7777 or 0o644,
                target=_zip_target(pack, info) if kind is MemberType.SYMLINK else "",
                open=lambda info=info: pack.open(info),  # type: ignore[misc]  # mypy cannot type a default
            )


def _zip_type(info: zipfile.ZipInfo) -> MemberType:
    if info.is_dir():
        return MemberType.FOLDER
    format_ = stat.S_IFMT(info.external_attr >> 16)
    if format_ == stat.S_IFLNK:
        return MemberType.SYMLINK
    return MemberType.FILE if format_ in (0, stat.S_IFREG) else MemberType.OTHER


def _zip_target(pack: zipfile.ZipFile, info: zipfile.ZipInfo) -> str:
    with pack.open(info) as content:
        return content.read(_MAX_LINK_BYTES).decode(errors="surrogateescape")
