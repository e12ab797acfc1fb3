"""Watches the processes in which the serving framework runs models (ADR 0019).

Triton runs each instance of a Python model in a process of its own. When one ends, Triton goes on
showing the model as READY and answers every request for it with an error.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Protocol

import structlog

from maserve.base.keys import ModelName
from maserve.host.endings import EndWatch, find_processes

log = structlog.get_logger()


class ModelProcesses(Protocol):
    """The processes of loaded models; a model without any never counts as dead."""

    def watch(self, model: ModelName, expected: int) -> None:
        """Find the model's processes and watch them; fewer than `expected` means that one ended.

        None at all, where none was ever seen, means that they cannot be seen from here.
        """
        ...

    def forget(self, model: ModelName) -> None:
        """Watch a model no longer: it is loaded anew, or goes."""
        ...

    def ended(self) -> frozenset[ModelName]:
        """Return the models of which a watched process has ended."""
        ...


class TritonModelProcesses:
    """Finds Triton's processes by the model's path in the repository, which they are given.

    `on_end` is called when one ends. They must be visible: in a pod, by a shared process namespace.
    """

    def __init__(self, repository: Path, *, on_end: Callable[[], None]) -> None:
        self._repository = repository
        self._on_end = on_end
        self._watches: dict[ModelName, list[EndWatch]] = {}
        self._ended: set[ModelName] = set()
        self._can_see = False

    def watch(self, model: ModelName, expected: int) -> None:
        """See `ModelProcesses.watch`."""
        self.forget(model)
        if not expected:
            return
        pids = find_processes(f"{self._repository / model}/")
        if not pids and not self._can_see:
            log.info("processes of a model are not visible", model=model)
            return
        self._can_see = True
        self._watches[model] = [EndWatch(pid, partial(self._note_end, model)) for pid in pids]
        if len(pids) < expected:
            self._note_end(model)

    def forget(self, model: ModelName) -> None:
        """See `ModelProcesses.forget`."""
        for watch in self._watches.pop(model, ()):
            watch.close()
        self._ended.discard(model)

    def ended(self) -> frozenset[ModelName]:
        """See `ModelProcesses.ended`."""
        return frozenset(self._ended)

    def _note_end(self, model: ModelName) -> None:
        self._ended.add(model)
        self._on_end()
