"""The queue of changes and their acknowledgement, against an Envoy that only reads files."""

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from maserve.base.errors import Invalid, Problem, Unavailable
from maserve.base.tasks import run_until
from maserve.envoy.admin import Admin
from maserve.envoy.layout import Layout
from maserve.envoy.ledger import Ledger
from maserve.envoy.render import Renderer
from maserve.envoy.state import State, parse_state, with_listener, with_route, with_service
from maserve.envoy.swap import Rejected, Swapper
from maserve.envoy.types import Address, EnvoySettings, RouteRef, RouteRule, ServiceRef
from maserve.host import Answer, Worker
from maserve.testing.clock import FakeClock

SERVICE = ServiceRef(cluster=None, namespace="team", name="s")
ROUTE = RouteRef(cluster=None, namespace="team", name="s-discovery")
RULE = RouteRule(
    match_path="/s", is_exact=True, rewrite_path="/cluster/s", is_full_rewrite=True, service="s"
)
SCOPES = {"clusters.json": "cluster_manager.cds", "listeners.json": "listener_manager.lds"}


class HastyClock(FakeClock):
    """Does not sleep: the time it would have slept is over at once."""

    async def sleep(self, seconds: float) -> None:
        self.advance(seconds)
        await asyncio.sleep(0)


@dataclass(slots=True)
class FileEnvoy:
    """Answers the admin requests as an Envoy would that reads the folder whenever it is asked.

    A file with `poison` in it is refused, once for each time it is written. A deaf one answers, but
    reads nothing.
    """

    layout: Layout
    epoch: int = 1
    last_end: str = ""
    is_silent: bool = False
    is_deaf: bool = False
    poison: str = "nothing is poisonous"
    versions: dict[str, str] = field(default_factory=dict)
    refusals: dict[str, int] = field(default_factory=dict)
    tried: dict[str, int] = field(default_factory=dict)
    asked: int = 0

    async def request(self, method: str, url: str, *, timeout_s: float) -> Answer:
        self.asked += 1
        if self.is_silent:
            raise Unavailable("no answer")
        self.read()
        rows = (
            [f'{scope}.version_text: "{version}"' for scope, version in self.versions.items()]
            if "version_text" in url
            else [f"{scope}.update_rejected: {n}" for scope, n in self.refusals.items()]
        )
        return Answer(status=200, body="\n".join(rows).encode())

    def read(self) -> None:
        files = [] if self.is_deaf else sorted(self.layout.clusters.parent.rglob("*.json"))
        for path in files:
            self._take(path)

    def restart(self) -> None:
        self.epoch += 1
        self.versions, self.refusals, self.tried = {}, {}, {}

    def _take(self, path: Path) -> None:
        text = path.read_text()
        document = json.loads(text)
        scope, version = scope_of(path, document), document["version_info"]
        written = path.stat().st_ino
        is_new = self.tried.get(scope) != written
        self.tried[scope] = written
        if self.poison in text:
            self.refusals[scope] = self.refusals.get(scope, 0) + is_new
        else:
            self.versions[scope] = version


def scope_of(path: Path, document: dict[str, list[dict[str, str]]]) -> str:
    if path.name in SCOPES:
        return SCOPES[path.name]
    (resource,) = document["resources"]
    if path.parent.name == "routes":
        return f"http.{resource['name']}.rds.{resource['name']}"
    return f"cluster.{resource['cluster_name']}"


@dataclass(frozen=True, slots=True)
class World:
    envoy: FileEnvoy
    ledger: Ledger
    swapper: Swapper
    layout: Layout
    room: list[int]

    @property
    def stored(self) -> State:
        return parse_state(self.layout.state.read_text(), source="state")


@asynccontextmanager
async def a_world(folder: Path) -> AsyncIterator[World]:
    settings = EnvoySettings(folder=folder)
    layout, worker, clock = Layout(folder), Worker("test-files"), HastyClock()
    envoy = FileEnvoy(layout)
    renderer = Renderer(layout, settings)
    swapper = Swapper(
        layout,
        renderer=renderer,
        admin=Admin(envoy),
        process=envoy,
        worker=worker,
        clock=clock,
        timeout_s=5,
    )
    room = [1000]
    ledger = Ledger(
        layout,
        renderer=renderer,
        swapper=swapper,
        worker=worker,
        clock=clock,
        can_watch=lambda count: count <= room[0],
    )
    await ledger.load()
    await ledger.prepare()
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(run_until(stop, ledger.run()))
        yield World(envoy, ledger, swapper, layout, room)
        stop.set()
    worker.close()


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path) as made:
        yield made


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(2):
        while not is_so():  # noqa: ASYNC110 - nothing announces it
            await asyncio.sleep(0)


def serving(port: int) -> Callable[[State], State]:
    return lambda state: with_service(state, SERVICE, [Address(host="127.0.0.1", port=port)])


def routed(state: State) -> State:
    return with_route(serving(1)(state), ROUTE, [RULE])


def listening(cluster: str, port: int) -> Callable[[State], State]:
    return lambda state: with_listener(state, cluster, port)  # type: ignore[arg-type] # a plain id


async def test_change_is_on_disk_and_acknowledged_when_it_returns(world: World) -> None:
    await world.ledger.submit(serving(1))
    assert world.stored.services[SERVICE] == (Address(host="127.0.0.1", port=1),)
    assert "cluster.service//team/s" in world.envoy.versions
    assert world.swapper.is_current()


async def test_change_that_changes_nothing_asks_nobody(world: World) -> None:
    await world.ledger.submit(serving(1))
    before = world.envoy.asked
    await world.ledger.submit(serving(1))
    assert world.envoy.asked == before


async def test_unchanged_state_is_verified_again_after_a_restart_of_envoy(world: World) -> None:
    await world.ledger.submit(serving(1))
    world.envoy.restart()
    assert not world.swapper.is_current()
    await world.ledger.submit(serving(1))
    assert world.swapper.is_current()


async def test_deaf_envoy_is_unavailable_and_the_change_is_kept(world: World) -> None:
    world.envoy.is_deaf = True
    with pytest.raises(Unavailable, match=r"did not acknowledge .*cds.* in 5 s"):
        await world.ledger.submit(serving(1))
    assert SERVICE in world.stored.services


async def test_envoy_that_keeps_ending_is_told_with_the_reason(world: World) -> None:
    world.envoy.is_silent = True
    world.envoy.last_end = "killed by SIGABRT; no memory"
    with pytest.raises(Unavailable, match="in 5 s; its last process: killed by SIGABRT; no memory"):
        await world.ledger.submit(serving(1))


async def test_change_that_got_no_answer_takes_effect_by_itself(world: World) -> None:
    world.envoy.is_silent = True
    with pytest.raises(Unavailable):
        await world.ledger.submit(serving(1))
    world.envoy.is_silent = False
    await until(world.swapper.is_current)
    assert "cluster.service//team/s" in world.envoy.versions


async def test_no_step_is_taken_before_the_one_that_got_no_answer_is_seen(world: World) -> None:
    await world.ledger.submit(listening("east", 667))
    world.envoy.is_deaf = True
    for _ in range(2):
        with pytest.raises(Unavailable):
            await world.ledger.submit(routed)
    assert "team/s" in world.layout.clusters.read_text()
    assert "team/s" not in world.layout.routes("gateway").read_text()
    world.envoy.is_deaf = False
    await world.ledger.submit(routed)
    assert "team/s" in world.layout.routes("gateway").read_text()


async def test_refused_change_is_told_and_taken_back(world: World) -> None:
    world.envoy.poison = '"port_value":666'
    with pytest.raises(Rejected, match=r"Envoy refused listener_manager\.lds"):
        await world.ledger.submit(listening("east", 666))
    assert world.stored.listeners == {}
    assert world.ledger.state == State()
    await world.ledger.submit(listening("east", 667))
    assert world.stored.listeners == {"east": 667}


async def test_refused_change_spoils_no_other_one_of_the_same_swap(world: World) -> None:
    world.envoy.poison = '"port_value":666'
    good, bad, also_good = await asyncio.gather(
        world.ledger.submit(serving(1)),
        world.ledger.submit(listening("east", 666)),
        world.ledger.submit(listening("west", 668)),
        return_exceptions=True,
    )
    assert (good, type(bad), also_good) == (None, Rejected, None)
    assert (world.stored.listeners, list(world.stored.services)) == ({"west": 668}, [SERVICE])


async def test_what_envoy_refuses_at_its_start_blocks_nothing_and_is_tried_again(
    world: World,
) -> None:
    await world.ledger.submit(listening("east", 666))
    world.envoy.poison = '"port_value":666'
    world.envoy.restart()
    world.ledger.look_again()
    await world.ledger.submit(serving(1))
    assert "listener_manager.lds" not in world.envoy.versions
    world.envoy.poison = "nothing any more"
    await until(lambda: "listener_manager.lds" in world.envoy.versions)


async def test_same_change_is_refused_again_as_long_as_it_is_bad(world: World) -> None:
    world.envoy.poison = '"port_value":666'
    with pytest.raises(Rejected):
        await world.ledger.submit(listening("east", 666))
    with pytest.raises(Rejected):
        await world.ledger.submit(listening("east", 666))
    world.envoy.poison = "nothing any more"
    await world.ledger.submit(listening("east", 666))
    assert world.stored.listeners == {"east": 666}


async def test_error_of_one_change_is_raised_to_its_caller_only(world: World) -> None:
    def fail(_: State) -> State:
        raise Invalid(Problem("rules", "are bad"))

    good, bad = await asyncio.gather(
        world.ledger.submit(serving(1)), world.ledger.submit(fail), return_exceptions=True
    )
    assert (good, type(bad)) == (None, Invalid)


async def test_full_disk_is_unavailable_and_nothing_is_changed(world: World) -> None:
    await world.ledger.submit(serving(1))
    text = world.layout.state.read_text()
    block_writes(world.layout)
    with pytest.raises(Unavailable, match=r"state\.json"):
        await world.ledger.submit(serving(2))
    assert (world.layout.state.read_text(), world.ledger.state) == (text, world.stored)


def block_writes(layout: Layout) -> None:
    """Let the next write of the state file fail as on a full disk."""
    layout.state.with_name(f".{layout.state.name}.{os.getpid()}.tmp").symlink_to("/dev/full")


async def test_more_files_than_envoy_may_watch_are_refused_and_harm_nothing(world: World) -> None:
    await world.ledger.submit(serving(1))
    world.room[0] = 5
    fitting, large = await asyncio.gather(
        world.ledger.submit(listening("east", 1)),
        world.ledger.submit(lambda state: listening("a", 2)(listening("b", 3)(state))),
        return_exceptions=True,
    )
    assert (fitting, world.stored.listeners) == (None, {"east": 1})
    assert re.search(r"2 more files: raise fs\.inotify\.max_user_instances = \d+", str(large))
    world.room[0] = 0
    await world.ledger.submit(serving(2))


async def test_files_of_what_is_gone_are_removed(world: World) -> None:
    await world.ledger.submit(serving(1))
    assert world.layout.endpoints("service//team/s").exists()
    await world.ledger.submit(lambda _: State())
    assert not world.layout.endpoints("service//team/s").exists()
    await world.ledger.submit(serving(1))
    assert world.layout.endpoints("service//team/s").exists()


async def test_acknowledgement_is_not_asked_for_twice(world: World) -> None:
    await world.ledger.submit(serving(1))
    scope = "http.gateway.rds.gateway"
    before = world.envoy.asked
    assert await world.swapper.find_acknowledgement(scope) is True
    assert world.envoy.asked == before
    world.envoy.restart()
    assert await world.swapper.find_acknowledgement(scope) is True
    assert world.envoy.asked == before + 1
    assert await world.swapper.find_acknowledgement("http.none.rds.none") is None


async def test_waiting_changes_fail_when_the_control_ends(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world, asyncio.TaskGroup() as group:
        world.envoy.is_silent = True
        waiting = group.create_task(expect_unavailable(world.ledger.submit(serving(1))))
    assert waiting.result()


async def expect_unavailable(call: Awaitable[None]) -> bool:
    with pytest.raises(Unavailable):
        await call
    return True
