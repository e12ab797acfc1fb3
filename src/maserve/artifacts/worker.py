"""A named thread for blocking work, which cancelling the awaiting task stops."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Event
from types import TracebackType
from typing import Self, TypeVar

T = TypeVar("T")


class Cancel:
    """Tells work in a thread that nobody waits for it any more."""

    def __init__(self) -> None:
        self._event = Event()

    def set(self) -> None:
        self._event.set()

    def check(self) -> None:
        """Raise if the work was cancelled; call it at least every few megabytes."""
        if self._event.is_set():
            raise _Cancelled


class CancelableWorker:
    """Runs blocking calls on named threads of its own, `threads` at once.

    Threads start with the first call and end with `async with`, or else with the interpreter.
    """

    def __init__(self, name: str, *, threads: int = 1) -> None:
        self._name = name
        self._threads = threads
        self._pool: ThreadPoolExecutor | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None

    async def run(self, work: Callable[[Cancel], T]) -> T:
        """Return what `work` returns. Cancelled, once or again, it waits for the thread's end."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix=self._name)
        cancel = Cancel()
        future = asyncio.get_running_loop().run_in_executor(self._pool, work, cancel)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            cancel.set()
            while not future.done():
                with suppress(asyncio.CancelledError):
                    await asyncio.wait([future])
            future.exception()  # nobody else will ask for it
            raise


class _Cancelled(Exception):
    """The awaiting task is gone."""
