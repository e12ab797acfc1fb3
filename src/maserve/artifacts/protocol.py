"""The port to stored artifacts."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from maserve.artifacts.uri import ArtifactUri


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a download is."""

    bytes_done: int
    bytes_total: int


OnProgress = Callable[[Progress], None]


class ArtifactSource(Protocol):
    """Reads artifacts. Raises `NotFound`, `Denied` and `Unavailable` apart, each naming the URI."""

    async def check_exists(self, uri: ArtifactUri) -> None:
        """Return if there is something to download; cheap, and bounded in time.

        Raises `NotFound` also for an empty folder, `Invalid` for an http(s) URI of no archive.
        """
        ...

    async def download(self, uri: ArtifactUri, into: Path, on_progress: OnProgress) -> None:
        """Put the artifact's files below `into`, which is made; archives are unpacked.

        On any error and on cancellation `into` may hold a part; the caller removes it. Raises
        `Invalid` for content that is refused (it escapes, is too big, is no archive) and
        `Unavailable` also for a full disk.
        """
        ...
