"""A busy life under light load: what is lost, and what of it grows.

Two clusters go through the same round again and again: rollouts there and back, a model that does
not load, replicas that come and go, neighbours that are made and deleted. In every sixth round the
replicas are replaced by others, one is killed, and so is the control plane in the middle of a
rollout. Other control planes on the machine are counted with the shared memory.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from benchmarks.growth import Growth, Sample, judge, take_sample
from benchmarks.report import Figure, print_figures
from maserve.base.clock import SystemClock
from maserve.base.keys import Key
from maserve.store.sqlite import StoreSettings
from maserve.testing.live import kill_process
from maserve.testing.live_story import (
    NAMESPACE,
    Story,
    a_story,
    fast_settings,
    is_complete,
    is_rolled_back,
)
from maserve.testing.load_process import load_on
from maserve.testing.load_results import LoadSummary
from maserve.testing.resources import a_deployment, an_inference_server
from maserve.testing.tiny_models import REQUEST
from maserve.wire import v2

RATE_PER_S = 40.0
SAMPLE_EVERY_S = 10.0
HARSH_EVERY = 6

NEIGHBOUR = Key(NAMESPACE, "neighbour")

GROWTH = {
    "MiB": 5.0,
    "threads": 4.0,
    "descriptors": 12.0,
    "processes": 2.0,
    "files": 10.0,
    "objects": 1.0,
}
"""By how much a measure may grow, by the last word of its name."""

LEVELS = {
    "store history": StoreSettings().history_changes,
    "store events": StoreSettings().events_per_namespace,
    "store MiB": StoreSettings().history_bytes / 1024**2,
    "store WAL MiB": 16.0,
}
"""How high what has a bound of its own may get: it grows until there."""

Step = Callable[[Story], Awaitable[None]]


def main(minutes: float) -> bool:
    with tempfile.TemporaryDirectory(prefix="maserve-soak-") as folder:
        samples, summary, left = asyncio.run(_soak(Path(folder), minutes * 60))
    for failure in summary.failures:
        print(f"  lost: {failure.count} from {failure.first_s:.1f} s on: {failure.text}")
    figures = [
        Figure(name="requests sent", value=summary.sent, unit=""),
        Figure(name="requests lost", value=summary.failed + summary.wrong, unit="", promise=0),
        Figure(name="processes left at the end", value=len(left), unit="", promise=0),
    ]
    figures += [_figure(found) for found in judge(samples)]
    return print_figures(f"{minutes:g} minutes of a busy life, {RATE_PER_S:g} requests/s", figures)


def _figure(found: Growth) -> Figure:
    name = found.measure
    if name in LEVELS:
        return Figure(name=f"{name}, highest", value=found.peak, unit="", promise=LEVELS[name])
    bound = GROWTH[name.rpartition(" ")[2]]
    what = f"{name}, growth over {found.level:.1f} (highest {found.peak:.1f})"
    return Figure(name=what, value=found.growth, unit="", promise=bound)


async def _soak(folder: Path, seconds: float) -> tuple[list[Sample], LoadSummary, tuple[str, ...]]:
    body = folder / "request.json"
    body.write_text(REQUEST)
    async with a_story(folder) as story:
        await _prepare(story)
        longest_s = seconds + 600
        async with (
            load_on(story.url, body, rate_per_s=RATE_PER_S, longest_s=longest_s) as load,
            _sampling(story) as samples,
        ):
            await _live(story, seconds)
            summary = await load.finish()
        await story.plane.stop()
        return samples, summary, story.plane.leftovers()


async def _prepare(story: Story) -> None:
    await story.model("v1", load_s=0.2)
    await story.model("v2", load_s=0.2)
    await story.model("broken", load_s=0.2, fails="no weights here")
    await story.server(replicas=1)
    await story.roll("v1")


async def _live(story: Story, seconds: float) -> None:
    """Say each step with its time, which is that of the load too."""
    clock = SystemClock()
    began_s, rounds = clock.monotonic(), 0
    while clock.monotonic() - began_s < seconds:
        for step in (*_ROUND, *(_HARSH if rounds % HARSH_EVERY == 0 else ())):
            name = step.__name__.strip("_").replace("_", " ")
            print(f"  {clock.monotonic() - began_s:7.1f} s  {name}", flush=True)
            await step(story)
        rounds += 1


@asynccontextmanager
async def _sampling(story: Story) -> AsyncIterator[list[Sample]]:
    """Yield the samples that are taken meanwhile."""
    samples: list[Sample] = []

    async def run() -> None:
        while True:
            samples.append(take_sample(story.plane))
            await SystemClock().sleep(SAMPLE_EVERY_S)

    async with asyncio.TaskGroup() as group:
        task = group.create_task(run())
        yield samples
        task.cancel()


async def _roll_forward(story: Story) -> None:
    await story.roll("v2")
    await story.only_loaded("v2")


async def _fail_and_roll_back(story: Story) -> None:
    await story.ask("broken")
    await story.until(
        lambda now: is_rolled_back(now, "v2") and now.status.candidate_revision.name == "broken"
    )
    await story.roll("v1")
    await story.only_loaded("v1")


async def _scale_up_and_down(story: Story) -> None:
    await story.server(replicas=2)
    await story.only_loaded("v1")
    await story.server(replicas=1)
    await story.data_plane_of(engines=2)


async def _deployment_comes_and_goes(story: Story) -> None:
    await story.ask("v2", deployment=NEIGHBOUR.name)
    await story.until(lambda now: is_complete(now, "v2"), deployment=NEIGHBOUR.name)
    await _delete(story, v2.Deployment)
    await story.only_loaded("v1")


async def _server_comes_and_goes(story: Story) -> None:
    await story.client.apply(an_inference_server(NEIGHBOUR.name, namespace=NAMESPACE))
    deployment = a_deployment(
        NEIGHBOUR.name, namespace=NAMESPACE, desired="v1", inference_server=NEIGHBOUR.name
    )
    await story.client.apply(deployment)
    await story.until(lambda now: is_complete(now, "v1"), deployment=NEIGHBOUR.name)
    await _delete(story, v2.Deployment)
    await _delete(story, v2.InferenceServer)


async def _delete(story: Story, kind: type[v2.Deployment] | type[v2.InferenceServer]) -> None:
    await story.client.delete(kind, NEIGHBOUR)
    await story.gone(kind, NEIGHBOUR)


async def _replace_replicas(story: Story) -> None:
    """Start again with another setting of Triton, which replaces each of them once."""
    before = story.plane.data_plane_pids()
    usual, other = fast_settings(), fast_settings(startup_failures=61)
    await story.plane.kill()
    story.plane.use_settings(other if story.plane.settings == usual else usual)
    await story.plane.start()
    await story.replaced(before)


async def _kill_replica(story: Story) -> None:
    engines = story.plane.data_plane_pids()
    pid = next(pid for name, pid in engines.items() if "/c1/" in name)
    kill_process(pid)
    await story.serves_again(pid)
    await story.only_loaded("v1")


async def _kill_control_plane(story: Story) -> None:
    await story.ask("v2")
    await story.plane.kill()
    await story.plane.start()
    await story.until(lambda now: is_complete(now, "v2"))
    await story.roll("v1")
    await story.only_loaded("v1")


_ROUND: tuple[Step, ...] = (
    _roll_forward,
    _fail_and_roll_back,
    _scale_up_and_down,
    _deployment_comes_and_goes,
    _server_comes_and_goes,
)
_HARSH: tuple[Step, ...] = (_replace_replicas, _kill_replica, _kill_control_plane)
