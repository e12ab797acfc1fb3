"""Structured concurrency: runs a group of tasks until an event fires."""

import asyncio
from collections.abc import Coroutine
from typing import Any


async def run_until(stop: asyncio.Event, *parts: Coroutine[Any, Any, None]) -> None:
    """Run all `parts` until `stop` is set, then cancel and await them.

    A part that raises ends the others and its error is raised; parts that return leave the rest
    running.
    """
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(part) for part in parts]
        # Waiting here and not in a task that raises: a cancellation from outside that comes in
        # the moment of the end is then never mistaken for the group's own (Python before 3.13).
        await stop.wait()
        for task in tasks:
            task.cancel()
