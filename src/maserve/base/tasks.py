"""Structured concurrency: ends a group of tasks from inside or when an event fires."""

import asyncio
from collections.abc import Coroutine
from typing import Any


class _Stop(Exception):  # noqa: N818 - never an error, only ends a group
    """Ends the group it is raised in."""


async def run_until(stop: asyncio.Event, *parts: Coroutine[Any, Any, None]) -> None:
    """Run all `parts` until `stop` is set, then cancel and await them.

    A part that raises ends the others and its error is raised; parts that return leave the rest running.
    """

    async def end() -> None:
        await stop.wait()
        raise _Stop

    try:
        async with asyncio.TaskGroup() as group:
            for part in parts:
                group.create_task(part)
            group.create_task(end())
    except* _Stop:
        pass
