"""The members of tar and zip archives in one form."""

import gzip
import io
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import IO, cast

from maserve.artifacts.uri import ArchiveKind

_MAX_LINK_BYTES = 4096
_MAX_HEADER_BYTES = 1 << 20


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
    size_bytes: int = 0
    target: str = ""
    open: Callable[[], IO[bytes]]


def iter_members(archive: Path, kind: ArchiveKind) -> Iterator[Member]:
    """Yield the members in their stored order. Raises what `tarfile` and `zipfile` raise."""
    if kind is ArchiveKind.ZIP:
        yield from _iter_zip(archive)
    else:
        yield from _iter_tar(archive, packed=kind is not ArchiveKind.TAR)


def _iter_tar(archive: Path, *, packed: bool) -> Iterator[Member]:
    with gzip.open(archive) if packed else archive.open("rb") as file:
        reader = _TarReader(cast("IO[bytes]", file))
        with tarfile.open(fileobj=reader, mode="r:") as tar:
            while info := tar.next():
                tar.members.clear()  # type: ignore[attr-defined]  # no stub; all headers would stay
                reader.begin_content()
                yield Member(
                    name=info.name,
                    type=_tar_type(info),
                    mode=info.mode,
                    size_bytes=info.size,
                    target=info.linkname,
                    open=lambda info=info: _opened(tar.extractfile(info)),  # type: ignore[misc]  # mypy cannot type a default
                )
                reader.begin_headers()
            reader.finish()


class _TarReader(io.RawIOBase):
    """The file below a `TarFile`, which reads headers into memory whatever their length.

    It also takes anything that is no header for the archive's end, so that is looked at here.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._last = b""
        self._left: int | None = _MAX_HEADER_BYTES

    def begin_content(self) -> None:
        self._left = None

    def begin_headers(self) -> None:
        self._left = _MAX_HEADER_BYTES

    def finish(self) -> None:
        """Raise unless the archive's end was just read, and read what follows: a checksum."""
        if self._last != bytes(tarfile.BLOCKSIZE):
            raise tarfile.ReadError("it is damaged or ends too early")
        while self.read(tarfile.RECORDSIZE):
            pass

    def read(self, size: int = -1) -> bytes:
        _refuse_negative(size)
        if self._left is not None:
            self._left -= size
            if self._left < 0:
                raise tarfile.ReadError(f"more than {_MAX_HEADER_BYTES} bytes are no content")
        self._last = self._file.read(size)
        return self._last

    def seek(self, offset: int, whence: int = 0) -> int:
        _refuse_negative(offset)
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()


def _refuse_negative(number: int) -> None:
    """Refuse what a header with a negative length leads to: reading everything, or going back."""
    if number < 0:
        raise tarfile.ReadError("a header has a negative length")


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
                size_bytes=info.file_size,
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
