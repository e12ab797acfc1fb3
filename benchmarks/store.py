"""The SQLite store: writes, reads and watch latency, with full durability."""

import asyncio
import tempfile
from pathlib import Path

from benchmarks.plane import median
from benchmarks.report import Figure, print_figures
from maserve.base.clock import SystemClock
from maserve.resource import clone, key_of
from maserve.store.sqlite import SqliteStore
from maserve.testing.builders import a_deployment

COUNT = 300


def main() -> bool:
    return print_figures("SQLite store, synchronous=FULL", asyncio.run(_measure()))


async def _measure() -> list[Figure]:
    clock = SystemClock()
    with tempfile.TemporaryDirectory(prefix="maserve-bench-") as folder:
        async with SqliteStore(Path(folder) / "store.db", clock=clock) as store:
            stored = await store.create(a_deployment())
            writes, reads = [], []
            for number in range(COUNT):
                changed = clone(stored)
                changed.status.message = str(number)
                began_s = clock.monotonic()
                stored = await store.update_status(changed)
                writes.append(clock.monotonic() - began_s)
            for _ in range(COUNT):
                began_s = clock.monotonic()
                await store.get(type(stored), key_of(stored))
                reads.append(clock.monotonic() - began_s)
    return [
        Figure(name="one write, median", value=median(writes) * 1000, unit="ms"),
        Figure(name="one read, median", value=median(reads) * 1000, unit="ms"),
    ]
