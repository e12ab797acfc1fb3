"""Brings a snapshot to the running Envoy: files in a safe order, each step acknowledged.

Invariant: a step is taken only after Envoy has acknowledged the one before.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from maserve.base.clock import Clock
from maserve.base.errors import Unavailable
from maserve.envoy.admin import Admin
from maserve.envoy.files import read_snapshot, remove_files, write_files
from maserve.envoy.layout import Layout
from maserve.envoy.manifest import build_address
from maserve.envoy.render import Renderer
from maserve.envoy.snapshot import DiscoveryFile, Snapshot, steps
from maserve.envoy.types import Address
from maserve.host import Worker, log_size_bytes, read_log_from

_FIRST_POLL_S = 0.001
_SLOWEST_POLL_S = 0.05
_REFUSED = "update rejected: "


class Rejected(Unavailable):
    """Envoy has refused a resource; the sentence has its reason."""


class Life(Protocol):
    """Tells one process of Envoy from the next."""

    @property
    def epoch(self) -> int:
        """Return a number that differs once the process is another one."""
        ...

    @property
    def last_end(self) -> str:
        """Return how the last one ended, empty once this one is known to serve."""
        ...


class Swapper:
    """Knows what is on disk and what the running Envoy has acknowledged of it."""

    def __init__(
        self,
        layout: Layout,
        *,
        renderer: Renderer,
        admin: Admin,
        process: Life,
        worker: Worker,
        clock: Clock,
        timeout_s: float,
    ) -> None:
        self._layout = layout
        self._renderer = renderer
        self._admin = admin
        self._process = process
        self._worker = worker
        self._clock = clock
        self._timeout_s = timeout_s
        self._on_disk = Snapshot()
        self._written: dict[Path, str] = {}
        self._refused: dict[str, str] = {}
        self._aim: dict[str, str] = {}
        self._versions: dict[str, str] = {}
        self._epoch = -1
        self._current_epoch: int | None = None

    async def load(self) -> None:
        """Learn what is on disk, which is what an adopted Envoy runs."""
        self._on_disk = await self._worker.call(read_snapshot, self._layout)
        self._written = await self._worker.call(self._read_versions)

    def has_listener_at(self, address: Address) -> bool:
        """Tell whether a listener on disk has that address."""
        wanted = build_address(address)
        return any(row.get("address") == wanted for row in self._on_disk.listeners.values())

    async def write(self, snapshot: Snapshot) -> None:
        """Write everything at once: for an Envoy that does not run yet."""
        listed = await self._aim_at(snapshot)
        await self._write(snapshot, listed)
        await self._remove_others(listed)

    async def publish(self, snapshot: Snapshot) -> None:
        """Bring Envoy to `snapshot` and return once it runs.

        Raises `Rejected` with Envoy's reason, `Unavailable` when it does not answer in time.
        """
        self._current_epoch = None
        listed = await self._aim_at(snapshot)
        # What is on disk comes first: a step that got no answer last time is still to be seen.
        for step in (self._on_disk, *steps(self._on_disk, snapshot)[:-1]):
            await self._take(step, await self._worker.call(self._renderer.files, step))
        await self._take(snapshot, listed)
        await self._remove_others(listed)
        self._current_epoch = self._epoch

    def forget_refusals(self) -> None:
        """Let the next `publish` try again what Envoy has refused."""
        self._refused.clear()

    def is_current(self) -> bool:
        """Tell whether what was published last runs, in the same process still."""
        return self._current_epoch == self._process.epoch

    async def find_acknowledgement(self, scope: str) -> bool | None:
        """Tell whether the running Envoy has what was last aimed at; None for a scope without aim.

        Asks Envoy unless this process of it has said so before.
        """
        version = self._aim.get(scope)
        if version is not None and self._known().get(scope) != version:
            await self._ask()
        return None if version is None else self._known().get(scope) == version

    async def _aim_at(self, snapshot: Snapshot) -> Sequence[DiscoveryFile]:
        listed = await self._worker.call(self._renderer.files, snapshot)
        self._aim = {file.scope: file.version for file in listed}
        return listed

    async def _take(self, step: Snapshot, listed: Sequence[DiscoveryFile]) -> None:
        changed = await self._find_changed(listed)
        if not changed:
            self._on_disk = step
            return
        before = await self._rejections()
        offset = log_size_bytes(self._layout.log)
        taken = self._on_disk
        await self._write(step, changed)
        try:
            await self._acknowledge(changed, before, offset)
        except Rejected:
            self._on_disk = taken  # the way back must not lead over what was refused
            raise

    async def _find_changed(self, listed: Sequence[DiscoveryFile]) -> list[DiscoveryFile]:
        """Return what is to be written: also what lies there but does not run yet.

        Envoy reads that again then, and either runs it or counts one more refusal.
        """
        if any(self._is_open(file) for file in listed):
            with suppress(Unavailable):
                await self._ask()
        return [file for file in listed if self._is_new(file) or self._is_open(file)]

    async def _write(self, step: Snapshot, changed: Sequence[DiscoveryFile]) -> None:
        self._on_disk = step
        for file in changed:
            self._refused.pop(file.scope, None)
            self._versions.pop(file.scope, None)
        await self._worker.call(write_files, changed)
        self._written.update({file.path: file.version for file in changed})

    async def _acknowledge(
        self, waiting: Sequence[DiscoveryFile], before: Mapping[str, int], log_offset: int
    ) -> None:
        deadline = self._clock.monotonic() + self._timeout_s
        pause_s = _FIRST_POLL_S
        while missing := await self._missing(waiting):
            await self._raise_if_refused(missing, before, log_offset)
            if self._clock.monotonic() > deadline:
                raise Unavailable(self._describe_silence(missing))
            await self._clock.sleep(pause_s)
            pause_s = min(pause_s * 2, _SLOWEST_POLL_S)

    def _describe_silence(self, missing: Sequence[DiscoveryFile]) -> str:
        names = ", ".join(file.scope for file in missing)
        ended = f"; its last process: {self._process.last_end}" if self._process.last_end else ""
        return f"Envoy did not acknowledge {names} in {self._timeout_s:g} s{ended}"

    async def _missing(self, waiting: Sequence[DiscoveryFile]) -> list[DiscoveryFile]:
        try:
            await self._ask()
        except Unavailable:
            return list(waiting)
        known = self._known()
        return [file for file in waiting if known.get(file.scope) != file.version]

    async def _raise_if_refused(
        self, missing: Sequence[DiscoveryFile], before: Mapping[str, int], log_offset: int
    ) -> None:
        counts = await self._rejections()
        refused = [f for f in missing if counts.get(f.scope, 0) > before.get(f.scope, 0)]
        if refused:
            self._refused.update({file.scope: file.version for file in refused})
            reason = await self._worker.call(_read_reason, self._layout.log, log_offset)
            names = ", ".join(file.scope for file in refused)
            raise Rejected(f"Envoy refused {names}: {reason}")

    async def _remove_others(self, listed: Sequence[DiscoveryFile]) -> None:
        kept = frozenset(file.path for file in listed)
        for path in await self._worker.call(remove_files, self._layout, kept):
            self._written.pop(path, None)

    def _read_versions(self) -> dict[Path, str]:
        listed = self._renderer.files(self._on_disk)
        return {file.path: file.version for file in listed if file.path.exists()}

    async def _rejections(self) -> dict[str, int]:
        try:
            return await self._admin.rejections()
        except Unavailable:
            return {}

    async def _ask(self) -> None:
        epoch = self._process.epoch
        versions = await self._admin.versions()
        self._epoch, self._versions = epoch, versions

    def _known(self) -> Mapping[str, str]:
        """Return the acknowledged versions; none of them outlives the process that said so."""
        return self._versions if self._epoch == self._process.epoch else {}

    def _is_new(self, file: DiscoveryFile) -> bool:
        return self._written.get(file.path) != file.version

    def _is_open(self, file: DiscoveryFile) -> bool:
        """Tell whether the file lies there and nobody knows what Envoy makes of it."""
        is_refused = self._refused.get(file.scope) == file.version
        is_known = is_refused or self._known().get(file.scope) == file.version
        return not self._is_new(file) and not is_known


def _read_reason(log: Path, offset: int) -> str:
    text = " ".join(read_log_from(log, offset).split())
    reason = text.rpartition(_REFUSED)[2] if _REFUSED in text else text
    return reason[-600:] or f"no reason given; see {log}"
