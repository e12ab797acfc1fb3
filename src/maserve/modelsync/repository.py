"""The folder the serving framework loads from: one link per model, each put there in one step."""

import json
import os
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from maserve.base.errors import Invalid, Problem, Unavailable
from maserve.base.keys import ModelName
from maserve.host.files import make_folder, remove_file, remove_tree, write_atomically
from maserve.modelsync.types import FAILURE_CONTENT

CONTENT_FOLDER = "model"

_FAILED = "failed"
_MAX_REASON = 600
_SECOND_NS = 10**9


class Repository:
    """One replica's repository. Folders that are not links were put there by others and stay.

    Links are relative, so that the volume may be mounted elsewhere for the serving framework.
    """

    def __init__(self, folder: Path, *, cache: Path, private: Path) -> None:
        self._folder = folder
        self._cache = cache.absolute()
        self._private = private.absolute()

    def ensure(self) -> None:
        """Make the folders. Raises `Unavailable` naming the one that cannot be made."""
        for folder in (self._folder, self._private):
            make_folder(folder)

    def linked(self) -> Mapping[ModelName, str]:
        """Return the content id behind each of our links; `FAILURE_CONTENT` for a stand-in."""
        found: dict[ModelName, str] = {}
        for path in self._paths():
            content = self._find_content(path) if path.is_symlink() else None
            if content is not None:
                found[ModelName(path.name)] = content
        return found

    def link(self, model: ModelName, content: str, now: datetime, *, anew: bool = False) -> None:
        """Put a content of the cache at the model's name, in one step.

        In place of another, or of itself if it is to be loaded `anew`, it is dated `now`, or later
        if the clock went back: the serving framework loads over a loaded model only from files that
        are newer. Raises `Invalid` when a folder that is not ours is there, `Unavailable` for the
        disk.
        """
        folder = self._cache / content / CONTENT_FOLDER
        if anew or self.linked().get(model, content) != content:
            now_ns = int(now.timestamp()) * _SECOND_NS
            _date(folder, max(now_ns, _newest_ns(self._folder / model)) + _SECOND_NS)
        self._point(model, folder)

    def link_failure(self, model: ModelName, reason: str) -> None:
        """Put a stand-in at the model's name whose load fails with `reason`.

        The serving framework reports a model by its repository folder only, and a configuration
        that names a backend which does not exist fails with that name: the one way to be heard.
        """
        folder = self._private / _FAILED / model
        make_folder(folder / "1")
        write_atomically(folder / "config.pbtxt", _failing_config(model, reason).encode())
        self._point(model, folder)

    def remove(self, model: ModelName) -> None:
        """Take our link away, and a stand-in's files; absent is success."""
        path = self._folder / model
        if path.is_symlink():
            remove_file(path)
        self.forget_failure(model)

    def forget_failure(self, model: ModelName) -> None:
        remove_tree(self._private / _FAILED / model)

    def _paths(self) -> list[Path]:
        try:
            return sorted(self._folder.iterdir())
        except OSError as error:
            raise Unavailable(f"cannot list {self._folder}: {error.strerror or error}") from error

    def _point(self, model: ModelName, target: Path) -> None:
        path = self._folder / model
        if path.exists() and not path.is_symlink():
            raise Invalid(Problem(str(path), "was put into the repository by somebody else"))
        new = self._private / f"link-{model}"
        try:
            new.unlink(missing_ok=True)
            new.symlink_to(os.path.relpath(target, self._folder.absolute()))
            new.replace(path)
        except OSError as error:
            raise Unavailable(f"cannot link {path}: {error.strerror or error}") from error

    def _find_content(self, path: Path) -> str | None:
        target = Path(os.path.normpath(self._folder.absolute() / path.readlink()))
        if target.parent == self._private / _FAILED:
            return FAILURE_CONTENT
        if target.name == CONTENT_FOLDER and target.parent.parent == self._cache:
            return target.parent.name
        return None


def _newest_ns(folder: Path) -> int:
    """Return the latest date of what is in the folder; 0 for one that is gone."""
    try:
        return max((path.lstat().st_mtime_ns for path in folder.iterdir()), default=0)
    except FileNotFoundError:
        return 0


def _date(folder: Path, date_ns: int) -> None:
    """Date what is in the folder: the serving framework compares version by version."""
    try:
        for path in folder.iterdir():
            os.utime(path, ns=(date_ns, date_ns), follow_symlinks=False)
    except OSError as error:
        raise Unavailable(f"cannot date {folder}: {error.strerror or error}") from error


def _failing_config(model: ModelName, reason: str) -> str:
    plain = "".join(letter if " " <= letter <= "~" else " " for letter in reason)[:_MAX_REASON]
    backend = json.dumps(f"model-sync: {plain}")
    return f"name: {json.dumps(model)}\nbackend: {backend}\n"
