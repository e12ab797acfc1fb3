"""Which content the engine was last seen to load, per model."""

from collections.abc import Mapping
from pathlib import Path

from maserve.base.errors import Error
from maserve.base.keys import ModelName
from maserve.host.files import find_json, write_json


class Applied:
    """Which content the engine has confirmed per model; outlives this process, not the file.

    The index tells that a model is ready, not from which content.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._contents: dict[ModelName, str] = {}

    def load(self) -> None:
        """Read what an earlier process confirmed; a broken file means loading once more."""
        try:
            value = find_json(self._path)
        except Error:
            value = None
        rows = value if isinstance(value, dict) else {}
        self._contents = {ModelName(str(k)): str(v) for k, v in rows.items()}

    def contents(self) -> Mapping[ModelName, str]:
        return dict(self._contents)

    def set(self, model: ModelName, content: str) -> None:
        if self._contents.get(model) != content:
            self._contents[model] = content
            write_json(self._path, self._contents)

    def drop(self, model: ModelName) -> None:
        if self._contents.pop(model, None) is not None:
            write_json(self._path, self._contents)
