"""Downloaded model folders, shared by the replicas of one machine.

```
<cache>/<content>/model/       the verified folder, only ever put here whole, by a rename
                  artifact.json   where it came from, and its files with their sizes
                  users/<replica> who uses it: the path of a repository, relative to the cache
<cache>/tmp/<content>/         a download; its owner holds the lock, so without one it is a leftover
<cache>/locks/<content>        lock file, never removed
```
"""

import os
import re
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

from maserve.artifacts import (
    ArtifactSource,
    ArtifactUri,
    Cancel,
    CancelableWorker,
    OnProgress,
    content_id,
    verify_model_folder,
)
from maserve.base.clock import Clock
from maserve.base.errors import Invalid, Unavailable
from maserve.base.keys import ModelName
from maserve.host.files import find_json, remove_tree, write_json
from maserve.modelsync.lock import locked
from maserve.modelsync.repository import CONTENT_FOLDER

T = TypeVar("T")

_MARKER = "artifact.json"
_USERS = "users"
_TMP = "tmp"
_LOCKS = "locks"
_CONTENT = re.compile(r"[0-9a-f]{32}")
"""What `content_id` gives; anything else in a volume's root is not ours."""


class Cache:
    """One user's view of a cache; while the user's own `repository` is there, so is the user."""

    def __init__(
        self,
        folder: Path,
        *,
        user: str,
        repository: Path,
        source: ArtifactSource,
        worker: CancelableWorker,
        clock: Clock,
    ) -> None:
        self._folder = folder
        self._user = user
        self._repository = os.path.relpath(repository.absolute(), folder.absolute())
        self._source = source
        self._worker = worker
        self._clock = clock

    async def start(self) -> frozenset[str]:
        """Remove what crashed downloads and vanished users left; return what this user holds."""
        await self._run(lambda _: self._make_folders())
        for content in await self._run(lambda _: _names(self._folder / _TMP)):
            await self._sweep(content, self._drop_leftover)
        contents = await self._run(lambda _: self._contents())
        for content in contents:
            await self._sweep(content, self._drop_unused)
        return await self._run(lambda _: self._held())

    async def prepare(self, model: ModelName, storage_path: str, on_progress: OnProgress) -> None:
        """Have the content of `storage_path` here, verified as `model`, held by this user.

        Waits while another replica downloads it. Raises what `ArtifactUri.parse`, the source and
        `verify_model_folder` raise; nothing half stays at a place where it could be loaded.
        """
        uri = ArtifactUri.parse(storage_path, f"model {model}: storage_path")
        content = content_id(storage_path)
        await self._run(lambda _: self._make_folders())
        async with locked(self._lock(content), self._clock):
            await self._run(lambda _: self._drop_leftover(content))
            if not await self._run(lambda _: self._is_whole(content)):
                await self._download(model, uri, storage_path, on_progress)
            await self._run(lambda _: self._verify(content, model))
            await self._run(lambda _: self._take(content))

    async def release(self, content: str) -> None:
        """Stop using a content; it is removed if nobody else uses it.

        Waits for the lock: of two replicas that let go at the same time the second removes it.
        """
        async with locked(self._lock(content), self._clock):
            await self._run(lambda _: self._leave(content))

    async def _sweep(self, content: str, drop: Callable[[str], None]) -> None:
        """Run `drop` under the content's lock; one that is locked is in use and left alone."""
        try:
            async with locked(self._lock(content), self._clock, timeout_s=0):
                await self._run(lambda _: drop(content))
        except Unavailable:
            return

    async def _download(
        self, model: ModelName, uri: ArtifactUri, storage_path: str, on_progress: OnProgress
    ) -> None:
        content = content_id(storage_path)
        temporary = self._folder / _TMP / content
        try:
            await self._source.download(uri, temporary / CONTENT_FOLDER, on_progress)
            finish = partial(self._finish, content, model, storage_path)
            await self._run(lambda _: finish())
        finally:
            await self._run(lambda _: remove_tree(temporary))

    def _finish(self, content: str, model: ModelName, storage_path: str) -> None:
        """Verify the download and put it in place, together with its marker."""
        temporary = self._folder / _TMP / content
        verify_model_folder(temporary / CONTENT_FOLDER, model)
        files = _measure(temporary / CONTENT_FOLDER)
        write_json(temporary / _MARKER, {"storage_path": storage_path, "files": files})
        _keep_users(self._folder / content / _USERS, temporary / _USERS)
        remove_tree(self._folder / content)  # there is only one here if it was found damaged
        temporary.rename(self._folder / content)

    def _verify(self, content: str, model: ModelName) -> None:
        verify_model_folder(self._folder / content / CONTENT_FOLDER, model)

    def _is_whole(self, content: str) -> bool:
        """Tell whether all that was downloaded is there; a power cut may have cut files short.

        More than that may be there: a model that runs leaves bytecode and files of its own.
        """
        try:
            marker = find_json(self._folder / content / _MARKER)
        except Invalid:
            return False
        files = marker.get("files") if isinstance(marker, dict) else None
        if not isinstance(files, dict):
            return False
        return files.items() <= _measure(self._folder / content / CONTENT_FOLDER).items()

    def _take(self, content: str) -> None:
        path = self._user_file(content)
        path.parent.mkdir(exist_ok=True)
        path.write_text(self._repository, encoding="utf-8")

    def _leave(self, content: str) -> None:
        self._user_file(content).unlink(missing_ok=True)
        self._drop_unused(content)

    def _drop_leftover(self, content: str) -> None:
        remove_tree(self._folder / _TMP / content)

    def _drop_unused(self, content: str) -> None:
        """Forget users whose repository is gone, then the content if none is left."""
        users = self._folder / content / _USERS
        for name in _names(users):
            text = (users / name).read_text(encoding="utf-8", errors="replace")
            repository = self._folder.absolute() / text
            if not Path(os.path.normpath(repository)).is_dir():
                (users / name).unlink(missing_ok=True)
        if not _names(users):
            remove_tree(self._folder / content)

    def _held(self) -> frozenset[str]:
        return frozenset(c for c in self._contents() if self._user_file(c).exists())

    def _contents(self) -> tuple[str, ...]:
        return tuple(name for name in _names(self._folder) if _CONTENT.fullmatch(name))

    def _user_file(self, content: str) -> Path:
        return self._folder / content / _USERS / self._user

    def _lock(self, content: str) -> Path:
        return self._folder / _LOCKS / content

    def _make_folders(self) -> None:
        for folder in (self._folder / _TMP, self._folder / _LOCKS):
            folder.mkdir(parents=True, exist_ok=True)

    async def _run(self, work: Callable[[Cancel], T]) -> T:
        """Run blocking file work; what the disk refuses is `Unavailable`."""
        try:
            return await self._worker.run(work)
        except OSError as error:
            where = error.filename or self._folder
            raise Unavailable(f"{where}: {error.strerror or error}") from error


def _keep_users(old: Path, new: Path) -> None:
    new.mkdir()
    for name in _names(old):
        shutil.copyfile(old / name, new / name)


def _names(folder: Path) -> tuple[str, ...]:
    try:
        return tuple(sorted(path.name for path in folder.iterdir()))
    except (FileNotFoundError, NotADirectoryError):
        return ()


def _measure(folder: Path) -> dict[str, int]:
    """Return the size in bytes of each file, by its path below the folder."""
    files = [Path(root) / name for root, _, names in os.walk(folder) for name in names]
    return {str(path.relative_to(folder)): path.lstat().st_size for path in files}
