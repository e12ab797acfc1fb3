"""Unpacking archives from strangers.

Files are written first, with names that cannot leave the target; links come last, so that nothing
is ever written through one; then every link is followed once to see that it stays inside.
"""

import errno
import lzma
import os
import shutil
import struct
import tarfile
import zipfile
import zlib
from pathlib import Path, PurePosixPath
from typing import IO

from maserve.artifacts.members import Member, MemberType, iter_members
from maserve.artifacts.settings import Limits
from maserve.artifacts.uri import ArchiveKind
from maserve.artifacts.worker import Cancel
from maserve.base.errors import Invalid, Problem, Unavailable

_CHUNK_BYTES = 1024 * 1024
_SPECIAL_BITS = 0o7000
_CONTENT_ERRNOS = (
    errno.ENAMETOOLONG,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.EEXIST,
    errno.EILSEQ,
    errno.EINVAL,  # zipfile seeks where a damaged directory tells it to
)
_BROKEN = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    NotImplementedError,  # a compression this interpreter does not have
    RuntimeError,  # zipfile: an encrypted member
    ValueError,  # tarfile: a malformed number in a header
    IndexError,  # zipfile: a member without a name
    OverflowError,
    struct.error,
)


def unpack(archive: Path, kind: ArchiveKind, into: Path, limits: Limits, cancel: Cancel) -> None:
    """Unpack into the new folder `into`; blocks.

    Raises `Invalid` naming the member for one that is absolute, climbs, is a link that leaves the
    folder, a device, set-uid, listed twice, or too much; and for an archive that cannot be read.
    Raises `Unavailable` naming the folder when the disk refuses. Content written so far stays.
    """
    unpacking = _Unpacking(into, limits, cancel)
    try:
        into.mkdir(parents=True)
        for member in iter_members(archive, kind):
            unpacking.take(member)
        unpacking.make_links()
    except _BROKEN as error:
        raise Invalid(Problem("archive", f"cannot be read: {error}")) from error
    except OSError as error:
        raise _translated(error, into) from error


class _Unpacking:
    """One archive on its way into one folder."""

    def __init__(self, root: Path, limits: Limits, cancel: Cancel) -> None:
        self._root = root
        self._limits = limits
        self._cancel = cancel
        self._count = 0
        self._bytes = 0
        self._files: set[PurePosixPath] = set()
        self._links: dict[PurePosixPath, Member] = {}

    def take(self, member: Member) -> None:
        """Write one file or folder, keep a link for later."""
        self._cancel.check()
        self._count += 1
        if self._count > self._limits.max_files:
            raise _refused(member, f"is more than the allowed {self._limits.max_files} members")
        path = _checked_path(member)
        if path == PurePosixPath("."):
            return
        self._check_place(member, path)
        if member.type is MemberType.FOLDER:
            self._place(path).mkdir(parents=True, exist_ok=True)
        elif member.type is MemberType.FILE:
            self._write(member, path)
        else:
            self._links[path] = member

    def make_links(self) -> None:
        for path, member in self._links.items():
            target = _checked_target(path, member)
            place = self._place(path)
            place.parent.mkdir(parents=True, exist_ok=True)
            if member.type is MemberType.SYMLINK:
                place.symlink_to(member.target)
            elif target in self._files:
                os.link(self._place(target), place)
            else:
                raise _refused(member, f"is a hard link to {member.target!r}, no file here")
        root = self._root.resolve()
        for path, member in self._links.items():
            self._check_followed(member, self._place(path), root)

    def _check_place(self, member: Member, path: PurePosixPath) -> None:
        if path in self._files or path in self._links:
            raise _refused(member, "is listed twice")
        for parent in path.parents:
            if parent in self._links:
                raise _refused(member, f"lies below the link {parent}")
            if parent in self._files:
                raise _refused(member, f"lies below the file {parent}")

    def _check_size(self, member: Member) -> None:
        """Look at the announced size first: a disk that is filled hurts all who write to it."""
        if self._bytes + member.size_bytes > self._limits.max_bytes:
            raise _refused(member, f"goes over the allowed {self._limits.max_bytes} bytes")
        if member.size_bytes > shutil.disk_usage(self._root).free:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _write(self, member: Member, path: PurePosixPath) -> None:
        self._check_size(member)
        place = self._place(path)
        if place.is_dir():
            raise _refused(member, "is a file where a folder is")
        place.parent.mkdir(parents=True, exist_ok=True)
        self._files.add(path)
        mode = 0o755 if member.mode & 0o111 else 0o644
        descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
        with os.fdopen(descriptor, "wb") as file, member.open() as content:
            self._copy(member, content, file)

    def _copy(self, member: Member, content: IO[bytes], file: IO[bytes]) -> None:
        while chunk := content.read(_CHUNK_BYTES):
            self._cancel.check()
            self._bytes += len(chunk)
            if self._bytes > self._limits.max_bytes:
                raise _refused(member, f"goes over the allowed {self._limits.max_bytes} bytes")
            file.write(chunk)

    def _check_followed(self, member: Member, place: Path, root: Path) -> None:
        try:
            inside = place.resolve(strict=True).is_relative_to(root)
        except FileNotFoundError:
            raise _refused(member, f"is a link to nothing: {member.target!r}") from None
        except (OSError, RuntimeError):
            raise _refused(member, f"is a link that leads nowhere: {member.target!r}") from None
        if not inside:
            place.unlink()
            raise _refused(member, f"is a link out of the archive: {member.target!r}")

    def _place(self, path: PurePosixPath) -> Path:
        return self._root.joinpath(*path.parts)


def _checked_path(member: Member) -> PurePosixPath:
    if "\0" in member.name or not member.name:
        raise _refused(member, "has a name that cannot be")
    path = PurePosixPath(member.name)
    if path.is_absolute():
        raise _refused(member, "has an absolute path")
    if ".." in path.parts:
        raise _refused(member, "climbs out of its folder")
    if member.type is MemberType.OTHER:
        raise _refused(member, "is a device, pipe or something else that is no file")
    if member.type is MemberType.FILE and member.mode & _SPECIAL_BITS:
        raise _refused(member, "has set-uid, set-gid or sticky bits")
    return path


def _checked_target(path: PurePosixPath, member: Member) -> PurePosixPath:
    """Return where a link leads by its text alone, relative to the archive's root."""
    target = PurePosixPath(member.target)
    if "\0" in member.target or not member.target or target.is_absolute():
        raise _refused(member, f"is a link out of the archive: {member.target!r}")
    base = path.parent if member.type is MemberType.SYMLINK else PurePosixPath(".")
    plain = PurePosixPath(os.path.normpath(base / target))
    if ".." in plain.parts:
        raise _refused(member, f"is a link out of the archive: {member.target!r}")
    return plain


def _refused(member: Member, why: str) -> Invalid:
    return Invalid(Problem("archive", f"member {member.name[:200]!r} {why}"))


def _translated(error: OSError, into: Path) -> Invalid | Unavailable:
    """Tell a disk that refuses (its errno says so) from content that cannot be stored."""
    if error.errno is None:  # gzip raises its own kind of OSError
        return Invalid(Problem("archive", f"cannot be read: {error}"))
    if error.errno in _CONTENT_ERRNOS:
        return Invalid(Problem("archive", f"cannot be stored: {error}"))
    return Unavailable(f"cannot write below {into}: {error.strerror or error}")
