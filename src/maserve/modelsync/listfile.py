"""The model config as this process sees it: one JSON file that others replace."""

from dataclasses import dataclass
from pathlib import Path

from maserve.base.errors import Error
from maserve.host.files import find_bytes, signature_of
from maserve.modelconfig.types import Entry, parse_entries

LIST_NAME = "model-list.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One reading: `entries` is None without a file, `problem` says why nothing can be told."""

    entries: tuple[Entry, ...] | None
    problem: str = ""


class ListFile:
    """Reads `path`, which is the file itself or the folder that a ConfigMap is mounted at."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def signature(self) -> tuple[int, ...]:
        """Return something that differs after every replacement, a swapped link above included."""
        return signature_of(self._find())

    def read(self) -> Reading:
        try:
            data = find_bytes(self._find())
            entries = None if data is None else parse_entries(data.decode("utf-8"))
        except (Error, UnicodeDecodeError) as error:
            return Reading(entries=None, problem=str(error))
        return Reading(entries=entries)

    def _find(self) -> Path:
        return self._path / LIST_NAME if self._path.is_dir() else self._path
