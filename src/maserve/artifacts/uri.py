"""Where an artifact is: `file://`, `s3://`, `gs://`, `az://`, `http(s)://`."""

import hashlib
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Self
from urllib.parse import unquote, urlsplit

from maserve.base.errors import Invalid, Problem

SCHEMES = ("file", "s3", "gs", "az", "http", "https")

_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}")


class ArchiveKind(StrEnum):
    """How an artifact that is one file is packed; named by how its path ends."""

    TAR = ".tar"
    TAR_GZ = ".tar.gz"
    TGZ = ".tgz"
    ZIP = ".zip"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactUri:
    """One parsed artifact URI.

    `place` is the bucket, the container or `host[:port]`; empty for files. `path` has no leading or
    trailing slash except for files, where it is absolute. `query` is kept for http(s) only.
    """

    scheme: str
    place: str
    path: str
    query: str = ""

    @classmethod
    def parse(cls, text: str, field: str = "storage_path") -> Self:
        """Parse `text`. Raises `Invalid` naming `field`, with every problem found.

        `az://container/path`: the account comes from the settings. Names and passwords inside a URI
        are refused: it is shown in conditions and logs.
        """
        if not text.strip():
            raise Invalid(Problem(field, f"is missing; give one of {_known()}"))
        scheme, separator, _ = text.partition("://")
        if not separator or scheme not in SCHEMES:
            raise Invalid(Problem(field, f"{text!r} has no known scheme; known: {_known()}"))
        parsed = _parse_file(text) if scheme == "file" else _parse_remote(scheme, text)
        problems = [Problem(field, f"{text!r} {fault}") for fault in _faults(parsed)]
        if problems:
            raise Invalid(*problems)
        return cls(scheme=scheme, place=parsed.place, path=parsed.path, query=parsed.query)

    @property
    def archive(self) -> ArchiveKind | None:
        """How it is packed, None for a folder."""
        lower = self.path.lower()
        return next((kind for kind in ArchiveKind if lower.endswith(kind)), None)

    @property
    def is_web(self) -> bool:
        return self.scheme in ("http", "https")

    def __str__(self) -> str:
        """Return the URI for people: without its query, which may be a signature."""
        if self.scheme == "file":
            return f"file://{self.path}"
        return f"{self.scheme}://{self.place}/{self.path}" + ("?…" if self.query else "")


def content_id(storage_path: str) -> str:
    """Return a folder name for the content of `storage_path`: the start of its SHA-256."""
    return hashlib.sha256(storage_path.encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    place: str
    path: str
    query: str = ""
    fault: str = ""


def _parse_file(text: str) -> _Parts:
    rest = text.removeprefix("file://").removeprefix("localhost")
    if not rest.startswith("/"):
        return _Parts(place="", path="", fault="needs an absolute path, such as file:///models/m1")
    return _Parts(place="", path=unquote(rest).rstrip("/") or "/")


def _parse_remote(scheme: str, text: str) -> _Parts:
    if scheme in ("s3", "gs", "az"):
        place, _, key = text.removeprefix(f"{scheme}://").partition("/")
        return _Parts(place=place, path=key.strip("/"), fault=_bucket_fault(place))
    try:
        split = urlsplit(text)
        port = f":{split.port}" if split.port else ""
    except ValueError as error:
        return _Parts(place="", path="", fault=f"is malformed: {error}")
    fault = "holds a user name or password" if split.username or split.password else ""
    fault = fault or ("" if split.hostname else "names no host")
    host = split.hostname or ""
    host = f"[{host}]" if ":" in host else host
    return _Parts(
        place=host + port, path=unquote(split.path).strip("/"), query=split.query, fault=fault
    )


def _bucket_fault(place: str) -> str:
    if not place:
        return "names no bucket"
    return "" if _BUCKET.fullmatch(place) else f"has a bucket name that cannot be: {place!r}"


def _faults(parts: _Parts) -> tuple[str, ...]:
    found = [parts.fault] if parts.fault else []
    if not parts.fault and parts.path in ("", "/"):
        found.append("names no object below its bucket, host or root")
    if any(segment in ("..", ".") for segment in parts.path.split("/")):
        found.append("holds a relative path segment")
    if any(ord(letter) < 32 for letter in parts.path + parts.place):
        found.append("holds a control character")
    return tuple(found)


def _known() -> str:
    return ", ".join(f"{scheme}://" for scheme in SCHEMES)
