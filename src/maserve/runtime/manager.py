"""Starts and stops the long-running parts of a process in their order."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import structlog

from maserve.base.errors import Unavailable
from maserve.runtime.leadership import Leadership

_log = structlog.get_logger()


class Part(Protocol):
    """Anything that runs for the life of the process."""

    async def run(self) -> None:
        """Work until cancelled; clean up on the way out."""
        ...


class Source(Part, Protocol):
    """A part that others must not start before, such as an informer."""

    async def wait_synced(self) -> None:
        """Return once it has seen the world."""
        ...


class Worker(Part, Protocol):
    """A part that only a leader runs and that can be asked to finish, such as a controller."""

    def stop(self) -> None:
        """Let `run` return soon, with the work in hand finished."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerSettings:
    """`sync_s`: how long sources may take to see the world; `stop_s`: how long workers may end."""

    sync_s: float = 60.0
    stop_s: float = 10.0


class Manager:
    """Runs parts in order: clients, then sources until they are synced, then, as leader, workers.

    Stops them as sources, queues, workers, clients, so that nothing new comes in while what is in
    hand is finished. A part that raises, or a lost leadership, ends everything: a new process
    starts from the stored state.
    """

    def __init__(
        self,
        *,
        clients: Sequence[Part] = (),
        sources: Sequence[Source] = (),
        workers: Sequence[Worker] = (),
        leadership: Leadership,
        settings: ManagerSettings,
    ) -> None:
        self._clients = tuple(clients)
        self._sources = tuple(sources)
        self._workers = tuple(workers)
        self._leadership = leadership
        self._settings = settings
        self._synced = asyncio.Event()
        self._leading = asyncio.Event()

    @property
    def is_ready(self) -> bool:
        """True while the sources are synced; a standby that waits to lead is ready too."""
        return self._synced.is_set()

    async def wait_leading(self) -> None:
        """Return once the workers run."""
        await self._leading.wait()

    async def run(self) -> None:
        """Run everything until cancelled, or until leadership is lost.

        Raises `Unavailable` if the sources do not sync in time.
        """
        async with asyncio.TaskGroup() as group:
            clients = _start(group, self._clients)
            sources = _start(group, self._sources)
            try:
                await self._sync()
                await self._leadership.run(lambda: self._lead(sources))
            finally:
                self._synced.clear()
                await _cancel(sources)
                await _cancel(clients)

    async def _sync(self) -> None:
        try:
            async with asyncio.timeout(self._settings.sync_s):
                for source in self._sources:
                    await source.wait_synced()
        except TimeoutError as error:
            raise Unavailable(
                f"the objects could not be read within {self._settings.sync_s:g}s"
            ) from error
        self._synced.set()

    async def _lead(self, sources: Sequence[asyncio.Task[None]]) -> None:
        """Run the workers until cancelled, then let them finish what they have in hand."""
        async with asyncio.TaskGroup() as group:
            workers = _start(group, self._workers)
            self._leading.set()
            _log.info("controllers started", workers=len(workers))
            try:
                await asyncio.Event().wait()
            finally:
                self._leading.clear()
                await _cancel(sources)
                await self._finish(workers)

    async def _finish(self, workers: Sequence[asyncio.Task[None]]) -> None:
        for worker in self._workers:
            worker.stop()
        if workers:
            await asyncio.wait(workers, timeout=self._settings.stop_s)
        await _cancel(workers)
        _log.info("controllers stopped")


def _start(group: asyncio.TaskGroup, parts: Sequence[Part]) -> tuple[asyncio.Task[None], ...]:
    return tuple(group.create_task(part.run()) for part in parts)


async def _cancel(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)
