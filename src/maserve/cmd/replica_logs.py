"""What the programs of a server's replicas write: the last lines, and those to come."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from maserve.base.errors import Invalid, Problem
from maserve.base.keys import ClusterId
from maserve.host import DataFolder
from maserve.inferenceserver import known_targets
from maserve.resource import key_of
from maserve.wire import ext, v2

LOG_FILES = {"engine": "engine.log", "model-sync": "model-sync.log"}
"""A replica's programs and the files they write."""

_BLOCK = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Place:
    """Who writes a file."""

    cluster: str
    replica: str
    process: str

    def say(self, line: str) -> ext.LogsResponse:
        return ext.LogsResponse(
            cluster_id=self.cluster, replica=self.replica, process=self.process, line=line
        )


@dataclass(slots=True)
class LogFile:
    """A file that grows, read by whole lines from `offset_bytes`; begun anew when it was cut."""

    path: Path
    offset_bytes: int = 0

    def lines(self) -> list[str]:
        """Return lines not returned yet, a bounded part of them; none if there is no file."""
        try:
            with self.path.open("rb") as file:
                if self.offset_bytes > file.seek(0, 2):
                    self.offset_bytes = 0
                file.seek(self.offset_bytes)
                data = file.read(_BLOCK)
        except OSError:
            return []
        whole = data[: data.rfind(b"\n") + 1] or (data if len(data) == _BLOCK else b"")
        self.offset_bytes += len(whole)
        return whole.decode(errors="replace").splitlines()

    def unfinished(self) -> list[str]:
        """Return the line at the end that nobody has ended yet, such as a dead program's last."""
        try:
            with self.path.open("rb") as file:
                file.seek(self.offset_bytes)
                return file.read(_BLOCK).decode(errors="replace").splitlines()
        except OSError:
            return []


@dataclass(slots=True)
class ReplicaLogs:
    """The logs that a request asks for; replicas that come later are found as they come.

    Reading raises `Invalid` for a cluster, replica or program that the server does not have.
    """

    folder: DataFolder
    server: v2.InferenceServer
    request: ext.LogsRequest
    _files: dict[Place, LogFile] = field(default_factory=dict)

    def last(self) -> Iterator[ext.LogsResponse]:
        """Yield the last lines of each file; all of them where the request gives no number."""
        wanted = max(0, self.request.tail_lines)
        for place, file in self._find().items():
            kept: list[str] = []
            while lines := file.lines():
                kept = (kept + lines)[-wanted:]
            kept += [] if self.request.follow else file.unfinished()
            yield from map(place.say, kept[-wanted:])

    def new(self) -> Iterator[ext.LogsResponse]:
        """Yield what was written since the last call."""
        for place, file in self._find().items():
            yield from map(place.say, file.lines())

    def _find(self) -> dict[Place, LogFile]:
        for place, path in self._paths().items():
            self._files.setdefault(place, LogFile(path))
        return self._files

    def _paths(self) -> dict[Place, Path]:
        request = self.request
        clusters = [target.cluster_id for target in known_targets(self.server)]
        _check("cluster", request.cluster_id, clusters)
        _check("process", request.process, list(LOG_FILES))
        key = key_of(self.server)
        homes = [
            (cluster, home)
            for cluster in clusters
            if request.cluster_id in ("", cluster)
            for home in sorted(self.folder.replicas(ClusterId(cluster), key).glob("*/"))
        ]
        _check("replica", request.replica, [home.name for _, home in homes])
        return {
            Place(cluster=cluster, replica=home.name, process=process): home / file
            for cluster, home in homes
            if request.replica in ("", home.name)
            for process, file in LOG_FILES.items()
            if request.process in ("", process)
        }


def _check(field_name: str, asked: str, known: list[str]) -> None:
    if asked and asked not in known:
        text = f"{asked!r} is not there; there are: {', '.join(known) or 'none'}"
        raise Invalid(Problem(field_name, text))
