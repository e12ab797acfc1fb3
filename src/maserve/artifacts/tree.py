"""What a source of artifacts gives: items, one listing, one fetch."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Protocol

from maserve.artifacts.settings import Limits
from maserve.artifacts.uri import ArtifactUri
from maserve.base.errors import Invalid, Problem

OnBytes = Callable[[int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One file of an artifact: `path` is where it goes, relative; `source` where it comes from."""

    path: PurePosixPath
    source: str
    size_bytes: int


class Tree(Protocol):
    """Reads one kind of storage. Raises `NotFound`, `Denied`, `Unavailable` naming the URI."""

    async def find_file(self, uri: ArtifactUri) -> Item | None:
        """Return the one file at the URI, None when there is no file of just that name."""
        ...

    async def has_items(self, uri: ArtifactUri) -> bool:
        """Tell whether there is at least one file below the URI; reads no more than one page."""
        ...

    async def list_items(self, uri: ArtifactUri, limits: Limits) -> tuple[Item, ...]:
        """Return every file below the URI, by path. Raises `Invalid` when there are too many."""
        ...

    async def fetch(self, uri: ArtifactUri, item: Item, into: Path, on_bytes: OnBytes) -> None:
        """Write one item to the new file `into`, announcing each piece written."""
        ...


class Collector:
    """Gathers items, refusing too many, too much and paths that escape."""

    def __init__(self, uri: ArtifactUri, limits: Limits) -> None:
        self._uri = uri
        self._limits = limits
        self._items: list[Item] = []
        self._bytes = 0

    def add(self, path: str, source: str, size_bytes: int) -> None:
        self._items.append(Item(path=self._checked(path), source=source, size_bytes=size_bytes))
        self._bytes += size_bytes
        if len(self._items) > self._limits.max_files:
            raise self._refused(f"holds more than the allowed {self._limits.max_files} files")
        if self._bytes > self._limits.max_bytes:
            raise self._refused(f"holds more than the allowed {self._limits.max_bytes} bytes")

    def items(self) -> tuple[Item, ...]:
        """Return what was gathered, by path. Raises `Invalid` for a file that is also a folder.

        An empty object named like a folder only stands for it: consoles of object stores make them.
        """
        folders = {folder for item in self._items for folder in item.path.parents}
        files = [one for one in self._items if one.size_bytes > 0 or one.path not in folders]
        clash = next((one.path for one in files if one.path in folders), None)
        if clash is not None:
            raise self._refused(f"holds {str(clash)!r} both as a file and as a folder")
        return tuple(sorted(files, key=lambda item: item.path))

    def _checked(self, path: str) -> PurePosixPath:
        pure = PurePosixPath(path)
        if pure.is_absolute() or ".." in pure.parts or not pure.parts or "\0" in path:
            raise self._refused(f"holds a path that escapes: {path!r}")
        return pure

    def _refused(self, why: str) -> Invalid:
        return Invalid(Problem("artifact", f"{self._uri} {why}"))
