"""What one replica says of its models, while somebody asks it."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from maserve.backends.triton.index import model_state
from maserve.backends.triton.local.poller import IndexPoller, Snapshot
from maserve.backends.triton.local.syncstatus import DEAD, merge
from maserve.backends.types import LoadState
from maserve.base.errors import Unavailable
from maserve.base.keys import ModelName, ReplicaName


@dataclass(frozen=True, slots=True, kw_only=True)
class Troubles:
    """Models that are dead, and those that only another replica helps, each with a sentence."""

    dead: Mapping[ModelName, str] = field(default_factory=dict)
    hopeless: Mapping[ModelName, str] = field(default_factory=dict)


class ReplicaLoads:
    """Load states from the replica's poller; there is one while its engine runs and was live."""

    def __init__(self, replica: ReplicaName, *, timeout_s: float) -> None:
        self._replica = replica
        self._timeout_s = timeout_s
        self._poller: IndexPoller | None = None
        self._opened = asyncio.Event()
        """Set while there is a poller."""

    def open(self, poller: IndexPoller) -> None:
        """Answer from what `poller` reads."""
        self._poller = poller
        self._opened.set()

    def close(self) -> None:
        """Answer nothing more: the engine has ended."""
        self._poller = None
        self._opened.clear()

    def invalidate(self) -> None:
        """Make readings of the index that have begun already too old."""
        if self._poller is not None:
            self._poller.invalidate()

    async def state(self, model: ModelName) -> tuple[LoadState, str]:
        """Return the model's state with its reason, from a reading after the last `invalidate`.

        Raises `Unavailable` when there is none in time.
        """
        snapshot = await self._reading()
        return merge(model_state(snapshot.rows, model), snapshot.sync, model)

    def latest(self) -> Mapping[ModelName, LoadState] | None:
        """Return the serving models with their states as they were read last.

        None while nobody can tell: the engine does not answer, or model-sync has not seen the list.
        """
        snapshot = self._poller.latest if self._poller is not None else None
        if snapshot is None or snapshot.error or snapshot.sync is None or snapshot.sync.is_outdated:
            return None
        return {
            model: merge(model_state(snapshot.rows, model), snapshot.sync, model)[0]
            for model in sorted(snapshot.sync.serving)
        }

    def troubles(self) -> Troubles:
        """Return what model-sync has last said of dead and stuck models."""
        snapshot = self._poller.latest if self._poller is not None else None
        rows = snapshot.sync.rows if snapshot is not None and snapshot.sync is not None else {}
        return Troubles(
            dead={
                model: f"model {model} is dead: {row.reason}"
                for model, row in rows.items()
                if row.state == DEAD
            },
            hopeless={
                model: row.stuck or f"model {model}: {row.reason}"
                for model, row in rows.items()
                if row.stuck or (row.state == DEAD and row.permanent)
            },
        )

    async def _reading(self) -> Snapshot:
        """Return a fresh reading of the index; the first one after an adoption is waited for."""
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._opened.wait()
                if self._poller is None:
                    raise Unavailable(f"replica {self._replica} has just ended")
                snapshot = await self._poller.fresh()
        except TimeoutError as error:
            raise Unavailable(f"replica {self._replica} does not say what it has loaded") from error
        if snapshot.error:
            raise Unavailable(f"replica {self._replica}: {snapshot.error}")
        return snapshot
