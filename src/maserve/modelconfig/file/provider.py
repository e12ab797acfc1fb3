"""The model config as a JSON file, replaced whole under a lock that model-sync takes too."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from maserve.base.clock import Clock
from maserve.base.errors import Invalid, NotFound, Problem, Unavailable
from maserve.base.keys import ClusterId, Key, ModelName
from maserve.host import (
    DataFolder,
    Worker,
    find_bytes,
    make_folder,
    remove_file,
    write_atomically,
)
from maserve.modelconfig.file.locked import lock_path, locked_list_now
from maserve.modelconfig.types import (
    Entry,
    parse_entries,
    render_entries,
    with_entry,
    without_entry,
)
from maserve.wire import v2

_LOCK_TIMEOUT_S = 5.0
_LOCK_POLL_S = 0.01

Entries = tuple[Entry, ...]


class FileModelConfigProvider:
    """Keeps one file per server and cluster in the data folder. Use as `async with`.

    Labels and annotations have no place in the file and are dropped. `changed` is called after each
    write that changed something.
    """

    def __init__(
        self,
        home: DataFolder,
        *,
        changed: Callable[[Key, ClusterId], None],
        clock: Clock,
    ) -> None:
        self._home = home
        self._changed = changed
        self._clock = clock
        self._worker = Worker("model-config")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._worker.close()

    async def create_model_config(
        self,
        server: Key,
        target: v2.ClusterTarget,
        *,
        labels: Mapping[str, str],  # noqa: ARG002 - a file has no labels
        annotations: Mapping[str, str],  # noqa: ARG002
    ) -> None:
        await self._locked(_create, server, target)

    async def check_model_config_exists(self, server: Key, target: v2.ClusterTarget) -> bool:
        return await self._worker.call(find_bytes, self._path(server, target)) is not None

    async def delete_model_config(self, server: Key, target: v2.ClusterTarget) -> None:
        await self._locked(self._delete, server, target)

    async def get_models_from_config(self, server: Key, target: v2.ClusterTarget) -> Entries:
        return await self._worker.call(_read, self._path(server, target))

    async def add_model_to_config(
        self, server: Key, target: v2.ClusterTarget, entry: Entry
    ) -> None:
        await self._edit(server, target, lambda entries: with_entry(entries, entry))

    async def remove_model_from_config(
        self, server: Key, target: v2.ClusterTarget, deployment_name: str, model: ModelName
    ) -> None:
        await self._edit(
            server, target, lambda entries: without_entry(entries, deployment_name, model)
        )

    async def _edit(
        self, server: Key, target: v2.ClusterTarget, change: Callable[[Entries], Entries]
    ) -> None:
        await self._locked(lambda path: _edit_file(path, change), server, target)

    async def _locked(
        self, work: Callable[[Path], bool], server: Key, target: v2.ClusterTarget
    ) -> None:
        """Do the work on the file once its lock is free, and tell when it has changed something."""
        path = self._path(server, target)
        deadline = self._clock.monotonic() + _LOCK_TIMEOUT_S
        while (is_changed := await self._worker.call(_try, work, path)) is None:
            if self._clock.monotonic() > deadline:
                raise Unavailable(f"{lock_path(path)} is held by another process")
            await self._clock.sleep(_LOCK_POLL_S)
        if is_changed:
            self._changed(server, ClusterId(target.cluster_id))

    def _path(self, server: Key, target: v2.ClusterTarget) -> Path:
        return self._home.model_config(ClusterId(target.cluster_id), server)

    def _delete(self, path: Path) -> bool:
        """Remove list and lock, and the folders that nothing else is in."""
        was_there = _delete_file(path)
        self._home.remove_empty(path.parent)
        return was_there


def _try(work: Callable[[Path], bool], path: Path) -> bool | None:
    """Do the work under the lock; None when somebody else holds it."""
    try:
        return work(path)
    except BlockingIOError:
        return None


def _create(path: Path) -> bool:
    make_folder(path.parent)
    with locked_list_now(path):
        if find_bytes(path) is not None:
            return False
        write_atomically(path, render_entries(()).encode())
        return True


def _delete_file(path: Path) -> bool:
    if not path.parent.is_dir():
        return False
    with locked_list_now(path):
        was_there = find_bytes(path) is not None
        remove_file(path)
        remove_file(lock_path(path))
        return was_there


def _edit_file(path: Path, change: Callable[[Entries], Entries]) -> bool:
    if find_bytes(path) is None:  # spares a lock file in a folder that is about to go
        raise NotFound("model config", path)
    with locked_list_now(path):
        before = _read(path)
        after = change(before)
        if after == before:
            return False
        write_atomically(path, render_entries(after).encode())
        return True


def _read(path: Path) -> Entries:
    data = find_bytes(path)
    if data is None:
        raise NotFound("model config", path)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise Invalid(Problem(str(path), f"is not UTF-8: {error}")) from error
    return parse_entries(text)
