"""Two replicas on one cache through random lives: in the end there is what the list says."""

import asyncio
import random
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from maserve.artifacts import content_id
from maserve.base.backoff import Backoff
from maserve.base.errors import NotFound, Unavailable
from maserve.base.keys import ReplicaName
from maserve.modelconfig.types import Entry
from maserve.testing.modelsync_rig import SyncRig, a_rig, an_entry

pytestmark = pytest.mark.looptime(noop_cycles=0)  # no threads, no sockets to wait for

NAMES = ("a", "b", "c")
URIS = tuple(f"s3://b/{number}" for number in range(4))
PAUSES_S = (0.01, 0.06, 0.3, 1, 3, 10)


class World:
    """What the events happen to."""

    def __init__(self, root: Path, seed: int) -> None:
        self.rnd = random.Random(seed)
        self.rigs = [a_quick_rig(root, ReplicaName(name)) for name in ("r0", "r1")]
        self.source = self.rigs[1].source = self.rigs[0].source
        self.entries: list[Entry] = []
        for uri in URIS:
            self.source.put(uri)
        self.write()

    def write(self) -> None:
        self.rigs[0].set_list(*self.entries)

    def add(self) -> None:
        name, uri, phase = (self.rnd.choice(all_) for all_ in (NAMES, URIS, ("serving", "staged")))
        deployment = self.rnd.choice(("d1", "d2"))
        self.entries.append(an_entry(name, uri, deployment=deployment, phase=phase))
        self.write()

    def add_canary(self) -> None:
        name, uri, pod = (self.rnd.choice(all_) for all_ in (NAMES, URIS, ("r0", "r1")))
        self.entries.append(an_entry(name, uri, phase="canary", canary_pod=pod))
        self.write()

    def remove(self) -> None:
        self.rnd.shuffle(self.entries)
        del self.entries[:1]
        self.write()

    def change_path(self) -> None:
        self.rnd.shuffle(self.entries)
        self.entries[:1] = [
            replace(entry, storage_path=self.rnd.choice(URIS)) for entry in self.entries[:1]
        ]
        self.write()

    def break_list(self) -> None:
        self.rigs[0].set_list_text("{")

    def lose_list(self) -> None:
        self.rigs[0].settings.model_config.unlink(missing_ok=True)

    def restart_engine(self) -> None:
        self.rnd.choice(self.rigs).engine.restart()

    def lose_answers(self) -> None:
        self.rnd.choice(self.rigs).engine.silent = True

    def fail_storage(self) -> None:
        uri = self.rnd.choice(URIS)
        self.source.errors[uri] = self.rnd.choice((Unavailable("down"), NotFound("artifact", uri)))

    def hold_storage(self) -> None:
        self.source.held.setdefault(self.rnd.choice(URIS), asyncio.Event())

    def calm(self) -> None:
        self.source.errors.clear()
        for gate in self.source.held.values():
            gate.set()
        self.source.held.clear()
        for rig in self.rigs:
            rig.engine.silent = False

    def lose_readiness(self) -> None:
        self.rnd.choice(self.rigs).settings.readiness_file.unlink(missing_ok=True)

    def events(self) -> list[Callable[[], None]]:
        often = [self.add, self.add, self.add_canary, self.remove, self.change_path]
        trouble = [self.break_list, self.lose_list, self.restart_engine, self.lose_answers]
        more = [self.fail_storage, self.hold_storage, self.calm, self.lose_readiness]
        return [*often, *often, *trouble, *more]

    async def live(self, count: int) -> None:
        """Run both replicas through `count` events, and end them as a kill would."""
        async with AsyncExitStack() as stack:
            for rig in self.rigs:
                await stack.enter_async_context(rig.running())
            for _ in range(count):
                self.rnd.choice(self.events())()
                await asyncio.sleep(self.rnd.choice(PAUSES_S))

    async def settle(self) -> None:
        self.calm()
        self.write()
        async with AsyncExitStack() as stack:
            for rig in self.rigs:
                await stack.enter_async_context(rig.running())
            await asyncio.sleep(200)


def a_quick_rig(root: Path, replica: ReplicaName) -> SyncRig:
    rig = a_rig(root, replica)
    quick = Backoff(initial_s=2, limit_s=10)
    rig.settings = replace(rig.settings, load_backoff=quick, download_backoff=quick, poll_s=0.2)
    return rig


def wanted(world: World, rig: SyncRig) -> dict[str, str]:
    """Return the path of each model that the list wants on the replica: the first entry's."""
    here = [entry for entry in world.entries if entry.is_wanted_on(rig.settings.replica)]
    return {str(entry.name): entry.storage_path for entry in reversed(here)}


@pytest.mark.parametrize("seed", range(6))
async def test_the_end_is_what_the_list_says(tmp_path: Path, seed: int) -> None:
    world = World(tmp_path, seed)
    await world.live(8)
    await world.live(8)
    await world.settle()
    one, two = world.rigs
    serving = sorted({str(entry.name) for entry in world.entries if entry.phase == "serving"})
    paths = {*wanted(world, one).values(), *wanted(world, two).values()}
    assert (one.engine.contents, two.engine.contents) == (wanted(world, one), wanted(world, two))
    assert (one.required(), two.required()) == (serving, serving)
    kept = {path.parent.name for path in one.settings.cache.glob("*/model")}
    assert kept == {content_id(path) for path in paths}
