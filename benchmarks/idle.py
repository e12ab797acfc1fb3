"""200 Deployments on 10 servers at rest: what it costs to keep them so."""

import asyncio
import random
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from benchmarks.report import Figure, print_figures
from maserve.base.clock import SystemClock
from maserve.resource import key_of
from maserve.store import Selection
from maserve.store.sqlite import SqliteStore
from maserve.testing.builders import a_deployment, a_model, an_inference_server
from maserve.testing.simulation import Simulation
from maserve.testing.taps import Tap
from maserve.wire import v2

SERVERS = 10
DEPLOYMENTS = 200
WINDOW_S = 60.0
CORE_SHARE = 0.02


def main() -> bool:
    writes, share = asyncio.run(_measure())
    return print_figures(
        f"{DEPLOYMENTS} Deployments on {SERVERS} servers at rest, {WINDOW_S:g} s",
        [
            Figure(name="store writes", value=writes, unit="", promise=0),
            Figure(name="share of a core", value=share * 100, unit="%", promise=CORE_SHARE * 100),
        ],
    )


async def _measure() -> tuple[float, float]:
    async with _world() as sim:
        tap = Tap(lambda _when: None)
        result: list[tuple[float, float]] = []

        async def story() -> None:
            await _fill(sim)
            await _until_live(sim)
            await asyncio.sleep(5)
            before, cpu_s = tap.count, time.process_time()
            await asyncio.sleep(WINDOW_S)
            result.append((tap.count - before, (time.process_time() - cpu_s) / WINDOW_S))

        await sim.run(tap, story)
        return result[0]


@asynccontextmanager
async def _world() -> AsyncIterator[Simulation]:
    """Yield a fake world in real time over a real store."""
    clock = SystemClock()
    with tempfile.TemporaryDirectory(prefix="maserve-bench-") as folder:
        rng = random.Random(0)
        async with SqliteStore(Path(folder) / "store.db", clock=clock, rng=rng) as store:
            yield Simulation(clock=clock, another_store=store)


async def _fill(sim: Simulation) -> None:
    await sim.store.create(a_model("m1"))
    for number in range(SERVERS):
        await sim.store.create(an_inference_server(f"is{number}", clusters=("c1", "c2")))
    for number in range(DEPLOYMENTS):
        name, server = f"d{number}", f"is{number % SERVERS}"
        await sim.store.create(a_deployment(name, desired="m1", server=server))


async def _until_live(sim: Simulation) -> None:
    """Return once every Deployment is complete."""
    while True:
        page = await sim.store.list(v2.Deployment, Selection())
        stages = {key_of(each): each.status.stage for each in page.items}
        if all(stage == v2.DEPLOYMENT_STAGE_ROLLOUT_COMPLETE for stage in stages.values()):
            return
        await asyncio.sleep(0.5)
