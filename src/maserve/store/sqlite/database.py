"""One SQLite file on one thread of its own.

Reads and writes are functions sent to that thread. Writes that wait at the same moment share one
commit, so that they share its trip to the disk; each has a savepoint and fails alone.
"""

import asyncio
import queue
import sqlite3
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from maserve.base.errors import Unavailable
from maserve.store.sqlite.faults import translate
from maserve.store.sqlite.schema import open_file
from maserve.store.sqlite.settings import StoreSettings

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Transaction:
    """What a write works on. `changed` collects the kinds whose readers are to be woken."""

    connection: sqlite3.Connection
    changed: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class _Job:
    work: Callable[[Transaction], Any]
    is_write: bool
    future: asyncio.Future[Any]


@dataclass(frozen=True, slots=True)
class _Outcome:
    """How a job ended: with `error` or with `value`."""

    job: _Job
    value: Any = None
    error: BaseException | None = None
    changed: frozenset[str] = frozenset()


class Database:
    """The file and its thread; `async with` opens and closes. `on_commit` is called on the loop."""

    def __init__(
        self,
        path: Path,
        *,
        settings: StoreSettings,
        on_commit: Callable[[frozenset[str]], None],
    ) -> None:
        self.path = path
        self._settings = settings
        self._on_commit = on_commit
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._held: _Job | None = None
        self._is_open = False
        self._thread = threading.Thread(target=self._run, name=f"sqlite-{path.name}", daemon=True)

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._opened: asyncio.Future[None] = self._loop.create_future()
        self._closed: asyncio.Future[None] = self._loop.create_future()
        self._thread.start()
        try:
            await self._opened
        except BaseException:
            self._jobs.put(None)  # cancelled while the file was being opened: close it again
            raise
        self._is_open = True
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._is_open = False
        self._jobs.put(None)
        await asyncio.shield(self._closed)
        self._thread.join()

    async def read(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` on the thread, in one consistent view of the file."""
        return await self._submit(work, is_write=False)

    async def write(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` on the thread, in a transaction that is on the disk when this returns.

        `work` may be run again if the first commit fails.
        """
        return await self._submit(work, is_write=True)

    async def _submit(self, work: Callable[[Transaction], T], *, is_write: bool) -> T:
        if not self._is_open:
            raise Unavailable(f"{self.path}: the store is closed")
        future: asyncio.Future[T] = self._loop.create_future()
        self._jobs.put(_Job(work, is_write, future))
        return await future

    # Everything below runs on the thread.

    def _run(self) -> None:
        try:
            connection = open_file(self.path, busy_timeout_s=self._settings.busy_timeout_s)
        except Exception as error:  # noqa: BLE001 - raised where the opening is awaited
            self._tell(_settle, self._opened, None, self._translated(error))
            return
        self._tell(_settle, self._opened, None, None)
        try:
            while batch := self._take():
                outcomes = self._execute(connection, batch)
                self._tell(self._deliver, outcomes)
        finally:
            connection.close()
            self._tell(_settle, self._closed, None, None)

    def _take(self) -> list[_Job]:
        """Wait for the next read, or for the next writes as they come; nothing at the end."""
        first = self._held or self._jobs.get()
        self._held = None
        if first is None:
            return []
        batch = [first]
        while first.is_write and len(batch) < self._settings.writes_per_commit:
            following = self._next_write()
            if following is None:
                break
            batch.append(following)
        return batch

    def _next_write(self) -> _Job | None:
        try:
            job = self._jobs.get_nowait()
        except queue.Empty:
            return None
        if job is None:
            self._jobs.put(None)
            return None
        if not job.is_write:
            self._held = job
            return None
        return job

    def _execute(self, connection: sqlite3.Connection, batch: list[_Job]) -> list[_Outcome]:
        if not batch[0].is_write:
            return [self._look(connection, batch[0])]
        try:
            return self._commit_together(connection, batch)
        except sqlite3.Error as error:
            if len(batch) == 1:
                return [_Outcome(batch[0], error=self._translated(error))]
            # One of them broke the transaction for all: each gets its own.
            return [self._execute(connection, [job])[0] for job in batch]

    def _look(self, connection: sqlite3.Connection, job: _Job) -> _Outcome:
        # No transaction needed: nobody else writes, and nothing else runs on this thread.
        try:
            return _Outcome(job, value=job.work(Transaction(connection)))
        except Exception as error:  # noqa: BLE001 - raised where the job is awaited
            return _Outcome(job, error=self._translated(error))

    def _commit_together(self, connection: sqlite3.Connection, batch: list[_Job]) -> list[_Outcome]:
        connection.execute("BEGIN IMMEDIATE")
        try:
            outcomes = [self._attempt(connection, job) for job in batch]
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        return outcomes

    def _attempt(self, connection: sqlite3.Connection, job: _Job) -> _Outcome:
        transaction = Transaction(connection)
        connection.execute("SAVEPOINT job")
        try:
            value = job.work(transaction)
        except sqlite3.Error:
            raise
        except Exception as error:  # noqa: BLE001 - raised where the job is awaited
            connection.execute("ROLLBACK TO job")
            connection.execute("RELEASE job")
            return _Outcome(job, error=error)
        connection.execute("RELEASE job")
        return _Outcome(job, value=value, changed=frozenset(transaction.changed))

    def _translated(self, error: BaseException) -> BaseException:
        if not isinstance(error, sqlite3.Error):
            return error
        ours = translate(error, str(self.path))
        if ours is None:
            return error
        ours.__cause__ = error
        return ours

    def _tell(self, call: Callable[..., None], *arguments: Any) -> None:
        self._loop.call_soon_threadsafe(call, *arguments)

    # Back on the loop.

    def _deliver(self, outcomes: list[_Outcome]) -> None:
        for outcome in outcomes:
            _settle(outcome.job.future, outcome.value, outcome.error)
        changed = frozenset[str]().union(*(outcome.changed for outcome in outcomes))
        if changed:
            self._on_commit(changed)


def _settle(future: asyncio.Future[Any], value: Any, error: BaseException | None) -> None:
    if future.done():  # its caller was cancelled meanwhile
        return
    if error is None:
        future.set_result(value)
    else:
        future.set_exception(error)
