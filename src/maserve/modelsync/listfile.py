"""The model config as this process sees it: one JSON file that others replace."""

from dataclasses import dataclass
from pathlib import Path

import structlog

from maserve.base.errors import Error
from maserve.base.keys import ModelName
from maserve.host.files import find_bytes, find_json, signature_of
from maserve.modelconfig.types import Entry, parse_entries

log = structlog.get_logger()

LIST_NAME = "model-list.json"
LIFTED_NAME = "lifted-requirements.json"
"""Beside the list, in Kubernetes a second key of its ConfigMap: a JSON list of the serving models
that are not required for readiness now (ADR 0017). The backend writes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One reading: `entries` is None without a file, `problem` says why nothing can be told."""

    entries: tuple[Entry, ...] | None
    problem: str = ""


class LiftedFile:
    """Reads which serving models are not required now; it lies beside the list.

    What cannot be read changes nothing: the last reading stays.
    """

    def __init__(self, model_config: Path) -> None:
        self._model_config = model_config
        self._last: frozenset[ModelName] = frozenset()

    def signature(self) -> tuple[int, ...]:
        """Return something that differs after every replacement."""
        return signature_of(self._find())

    def read(self) -> frozenset[ModelName]:
        """Return the names; none without a file."""
        try:
            names = find_json(self._find())
        except Error as error:
            log.warning("lifted requirements unreadable", error=str(error))
            return self._last
        is_list = isinstance(names, list)
        self._last = frozenset(ModelName(str(name)) for name in names) if is_list else frozenset()
        return self._last

    def _find(self) -> Path:
        beside = self._model_config.is_dir()
        return (self._model_config if beside else self._model_config.parent) / LIFTED_NAME


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
