"""Keeps, for one server in one cluster, what is not required for readiness now (ADR 0017)."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import structlog

from maserve.backends.triton.local.lifting import Holding, Models, decide_lifted
from maserve.backends.types import LoadState
from maserve.base.clock import Clock
from maserve.base.errors import Error
from maserve.base.keys import ModelName, ReplicaName
from maserve.host import Worker, find_json, remove_file, write_json

log = structlog.get_logger()


class HoldsModels(Protocol):
    """A replica, as far as this needs it."""

    @property
    def name(self) -> ReplicaName: ...

    def serving_states(self) -> Mapping[ModelName, LoadState] | None:
        """Return every serving model's state here; None while it does not run or answer."""
        ...


class Requirements:
    """Decides from what replicas have, and writes the file that model-sync reads.

    A model counts as out of reach once it failed to load, or has been missing for `hold_s`.
    """

    def __init__(self, path: Path, *, clock: Clock, files: Worker, hold_s: float) -> None:
        self._path = path
        self._clock = clock
        self._files = files
        self._hold_s = hold_s
        self._lifted: Models | None = None  # None: the file was not read yet
        self._missing_since: dict[tuple[ReplicaName, ModelName], float] = {}

    @property
    def lifted(self) -> Models:
        """Return the models that are not required now."""
        return self._lifted or frozenset()

    async def settle(self, replicas: Sequence[HoldsModels]) -> float | None:
        """Decide and write; return in how many seconds time alone may change the decision.

        Raises `Unavailable` when the file cannot be written.
        """
        if self._lifted is None:
            self._lifted = await self._files.call(_read, self._path)
        states = {each.name: each.serving_states() for each in replicas}
        answering = {name: found for name, found in states.items() if found is not None}
        self._note_missing(answering)
        holdings = [self._holding(name, found) for name, found in answering.items()]
        serving = frozenset(model for found in answering.values() for model in found)
        after = decide_lifted(self._lifted, serving, holdings) if holdings else self._lifted
        if after != self._lifted:
            await self._files.call(write_json, self._path, sorted(after))
            log.warning("requirements lifted", models=sorted(after), before=sorted(self._lifted))
            self._lifted = after
        return self._due_s()

    async def forget(self) -> None:
        """Remove the file: the server is gone."""
        await self._files.call(remove_file, self._path)

    def _holding(self, name: ReplicaName, states: Mapping[ModelName, LoadState]) -> Holding:
        ready = frozenset(model for model, state in states.items() if state is LoadState.READY)
        now_s = self._clock.monotonic()
        hopeless = frozenset(
            model
            for model, state in states.items()
            if state is LoadState.FAILED
            or (model not in ready and now_s - self._missing_since[name, model] >= self._hold_s)
        )
        return Holding(ready=ready, hopeless=hopeless)

    def _note_missing(self, answering: Mapping[ReplicaName, Mapping[ModelName, LoadState]]) -> None:
        now_s = self._clock.monotonic()
        self._missing_since = {
            (name, model): self._missing_since.get((name, model), now_s)
            for name, states in answering.items()
            for model, state in states.items()
            if state is not LoadState.READY
        }

    def _due_s(self) -> float | None:
        now_s = self._clock.monotonic()
        dues = [since + self._hold_s - now_s for since in self._missing_since.values()]
        return min((due for due in dues if due > 0), default=None)


def _read(path: Path) -> Models:
    """Read what an earlier process has written; a damaged file lifts nothing."""
    try:
        names = find_json(path)
    except Error:
        names = None
    is_list = isinstance(names, list)
    return frozenset(ModelName(str(name)) for name in names) if is_list else frozenset()
