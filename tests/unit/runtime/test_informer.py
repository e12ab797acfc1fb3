"""The informer against a store whose watches are played by hand, in virtual time."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from maserve.base.backoff import Backoff
from maserve.base.errors import Expired, NotFound, Unavailable
from maserve.base.keys import Key
from maserve.base.signals import Signal
from maserve.resource.kinds import R
from maserve.runtime import (
    Informer,
    InformerSettings,
    Transition,
    WriteThroughStore,
    enqueue_announced,
    enqueue_changed,
    enqueue_related,
    keys_by,
)
from maserve.store import Change, ChangeType, Page, Preconditions, Selection
from maserve.testing.clock import LoopClock
from maserve.wire import meta, v2

pytestmark = pytest.mark.looptime

KEY = Key("ns", "d1")
SERVER = Key("ns", "is1")


def a_deployment(
    version: int, *, name: str = "d1", uid: str = "u1", server: str = "is1"
) -> v2.Deployment:
    deployment = v2.Deployment(
        metadata=meta.ObjectMeta(name=name, namespace="ns", uid=uid, resourceVersion=str(version))
    )
    deployment.spec.inference_server.name = server
    return deployment


def a_dead_deployment(version: int) -> v2.Deployment:
    deployment = a_deployment(version)
    deployment.metadata.deletionTimestamp.seconds = 1
    return deployment


def added(resource: v2.Deployment) -> Change[v2.Deployment]:
    version = resource.metadata.resourceVersion
    return Change(type=ChangeType.ADDED, object=resource, version=version)


def modified(resource: v2.Deployment) -> Change[v2.Deployment]:
    version = resource.metadata.resourceVersion
    return Change(type=ChangeType.MODIFIED, object=resource, version=version)


def deleted(resource: v2.Deployment, version: int) -> Change[v2.Deployment]:
    return Change(type=ChangeType.DELETED, object=resource, version=str(version))


def synced(version: int) -> Change[v2.Deployment]:
    return Change(type=ChangeType.SYNCED, object=None, version=str(version))


Step = Change[v2.Deployment] | Exception


class PlayedStore:
    """Answers writes with what it is given, reads with `stored`, watches with `play`ed steps.

    An exception among the steps ends the watch with it, `StopAsyncIteration` without.
    """

    def __init__(self) -> None:
        self.steps: asyncio.Queue[Step] = asyncio.Queue()
        self.watched_since: list[str] = []
        self.stored: v2.Deployment | None = None
        self.deleted: list[Key] = []

    async def play(self, *steps: Step) -> None:
        for step in steps:
            self.steps.put_nowait(step)
        await asyncio.sleep(0.01)

    async def watch(self, kind: type[R], *, since: str = "") -> AsyncIterator[Change[R]]:
        self.watched_since.append(since)
        while not isinstance(step := await self.steps.get(), Exception):
            yield step  # type: ignore[misc]  # Deployments only
        if not isinstance(step, StopAsyncIteration):
            raise step

    async def create(self, resource: R, *, dry_run: bool = False) -> R:
        return resource

    async def get(self, kind: type[R], key: Key) -> R:
        return self.stored  # type: ignore[return-value]  # Deployments only

    async def find(self, kind: type[R], key: Key) -> R | None:
        return self.stored  # type: ignore[return-value]  # Deployments only

    async def list(self, kind: type[R], selection: Selection | None = None) -> Page[R]:
        return Page(items=(), version="1")

    async def update(self, resource: R, *, dry_run: bool = False) -> R:
        return resource

    async def update_status(self, resource: R) -> R:
        return resource

    async def delete(
        self,
        kind: type[R],
        key: Key,
        *,
        preconditions: Preconditions | None = None,
        dry_run: bool = False,
    ) -> None:
        self.deleted.append(key)


class Bench:
    """An informer, its store, and what its handler was told as (old version, new version)."""

    def __init__(self) -> None:
        self.store = PlayedStore()
        self.informer = Informer(
            v2.Deployment,
            self.store,
            clock=LoopClock(),
            rng=random.Random(1),
            settings=InformerSettings(resync_s=1000, backoff=Backoff(initial_s=1, limit_s=8)),
        )
        self.told: list[tuple[str, str]] = []
        self.informer.subscribe(self._tell)

    def _tell(self, transition: Transition[v2.Deployment]) -> None:
        states = (transition.old, transition.new)
        old, new = ("-" if s is None else s.metadata.resourceVersion for s in states)
        self.told.append((old, new))

    def version(self, key: Key = KEY) -> str | None:
        found = self.informer.find(key)
        return None if found is None else found.metadata.resourceVersion


@asynccontextmanager
async def running(*steps: Step) -> AsyncIterator[Bench]:
    bench = Bench()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(bench.informer.run())
        await bench.store.play(*steps)
        yield bench
        task.cancel()


async def test_it_is_synced_once_the_first_listing_is_complete() -> None:
    async with running(added(a_deployment(1))) as bench:
        assert not bench.informer.is_synced
        await bench.store.play(synced(1))
        await bench.informer.wait_synced()
        assert bench.informer.is_synced
        assert bench.told == [("-", "1")]


async def test_changes_update_the_cache_and_tell_old_and_new() -> None:
    async with running(added(a_deployment(1)), synced(1)) as bench:
        await bench.store.play(modified(a_deployment(2)), deleted(a_deployment(2), 3))
        assert bench.told == [("-", "1"), ("1", "2"), ("2", "-")]
        assert bench.version() is None


async def test_get_raises_for_what_is_not_there() -> None:
    async with running(added(a_deployment(1)), synced(1)) as bench:
        assert bench.informer.get(KEY).metadata.uid == "u1"
        with pytest.raises(NotFound, match="Deployment ns/other not found"):
            bench.informer.get(Key("ns", "other"))


async def test_list_is_by_name_and_namespace() -> None:
    async with running(added(a_deployment(1, name="b")), added(a_deployment(2, name="a"))) as bench:
        names = [deployment.metadata.name for deployment in bench.informer.list("ns")]
        assert names == ["a", "b"]
        assert bench.informer.list("elsewhere") == ()


async def test_an_own_write_is_seen_before_the_watch_reports_it() -> None:
    async with running(added(a_deployment(1)), synced(1)) as bench:
        bench.informer.observe(a_deployment(5))
        await bench.store.play(modified(a_deployment(4)), modified(a_deployment(5)))
        assert bench.version() == "5"
        assert bench.told == [("-", "1"), ("1", "5")]


async def test_an_old_answer_does_not_replace_a_newer_state() -> None:
    async with running(added(a_deployment(3)), synced(3)) as bench:
        bench.informer.observe(a_deployment(2))
        assert bench.version() == "3"


async def test_an_answer_after_the_deletion_does_not_bring_the_object_back() -> None:
    async with running(added(a_deployment(1)), synced(1)) as bench:
        await bench.store.play(deleted(a_deployment(1), 9))
        bench.informer.observe(a_deployment(8))
        assert bench.version() is None


async def test_an_answer_older_than_a_listing_without_the_object_is_ignored() -> None:
    async with running(synced(10)) as bench:
        bench.informer.observe(a_deployment(9))
        assert bench.version() is None


async def test_removing_the_last_finalizer_removes_the_object() -> None:
    async with running(added(a_deployment(1)), synced(1)) as bench:
        bench.informer.observe(a_dead_deployment(2))
        assert bench.version() is None
        assert bench.told == [("-", "1"), ("1", "-")]


async def test_a_recreated_object_survives_the_late_report_of_the_first_ones_deletion() -> None:
    async with running(added(a_deployment(1)), synced(1)) as bench:
        bench.informer.observe(a_deployment(3, uid="u2"))
        await bench.store.play(deleted(a_deployment(1), 2))
        assert bench.informer.get(KEY).metadata.uid == "u2"
        assert bench.told == [("-", "1"), ("1", "3")]


async def test_a_deletion_of_what_is_not_there_is_nothing() -> None:
    async with running(synced(1), deleted(a_deployment(1), 2)) as bench:
        assert bench.told == []


async def test_a_broken_watch_goes_on_from_where_it_was() -> None:
    async with running(added(a_deployment(1)), synced(4)) as bench:
        await bench.store.play(modified(a_deployment(6)), Unavailable("connection lost"))
        await asyncio.sleep(2)
        await bench.store.play(StopAsyncIteration())
        await asyncio.sleep(3)
        await bench.store.play(modified(a_deployment(8)))
        assert bench.store.watched_since == ["", "6", "6"]
        assert bench.version() == "8"


async def test_broken_watches_back_off_until_one_makes_progress() -> None:
    lost = Unavailable("connection lost")
    async with running(synced(1), lost, lost, lost, lost, lost) as bench:
        await asyncio.sleep(1 + 2 + 4 + 8 + 7)
        assert len(bench.store.watched_since) == 5
        await asyncio.sleep(2)
        assert len(bench.store.watched_since) == 6
        await bench.store.play(modified(a_deployment(2)), lost)
        await asyncio.sleep(1.1)
        assert len(bench.store.watched_since) == 7


async def test_after_an_expired_history_everything_is_listed_again() -> None:
    start = (added(a_deployment(1)), added(a_deployment(2, name="d2", uid="u2")), synced(2))
    async with running(*start) as bench:
        await bench.store.play(Expired("too old"))
        await asyncio.sleep(2)
        await bench.store.play(added(a_deployment(7)), synced(9))
        assert bench.store.watched_since == ["", ""]
        assert bench.told[2:] == [("1", "7"), ("2", "-")]
        bench.informer.observe(a_deployment(12, name="d2", uid="u2"))
        assert bench.version(Key("ns", "d2")) is None


async def test_what_was_written_after_a_listing_survives_it() -> None:
    async with running(synced(1), Expired("too old")) as bench:
        bench.informer.observe(a_deployment(12))
        await asyncio.sleep(2)
        await bench.store.play(synced(9))
        assert bench.version() == "12"


async def test_a_listing_that_breaks_in_the_middle_starts_over() -> None:
    async with running(added(a_deployment(1)), Unavailable("connection lost")) as bench:
        await asyncio.sleep(2)
        await bench.store.play(synced(3))
        assert bench.store.watched_since == ["", ""]
        assert bench.version() is None


async def test_a_watch_that_goes_on_may_say_synced_and_nothing_is_lost() -> None:
    async with running(added(a_deployment(1)), synced(4)) as bench:
        await bench.store.play(synced(9), Unavailable("connection lost"))
        await asyncio.sleep(2)
        assert bench.version() == "1"
        assert bench.store.watched_since == ["", "9"]


async def test_handlers_see_everything_again_from_time_to_time() -> None:
    async with running(added(a_deployment(1)), synced(1)) as bench:
        await asyncio.sleep(1001)
        assert bench.told == [("-", "1"), ("1", "1")]


async def test_a_late_handler_is_told_what_there_is_and_can_leave() -> None:
    async with running(added(a_deployment(1)), synced(1)) as bench:
        keys: list[Key] = []
        leave = enqueue_changed(bench.informer, keys.append)
        leave()
        leave()
        await bench.store.play(modified(a_deployment(2)))
        assert keys == [KEY]


async def test_only_so_many_deletions_are_remembered() -> None:
    async with running(synced(1)) as bench:
        gone = [deleted(a_deployment(2, uid=f"gone-{i}"), 2) for i in range(4097)]
        await bench.store.play(*gone)
        bench.informer.observe(a_deployment(3, uid="gone-0"))
        assert bench.version() == "3"
        bench.informer.observe(a_deployment(4, uid="gone-1"))
        assert bench.version() == "3"


def servers_of(deployment: v2.Deployment) -> tuple[Key, ...]:
    return (Key(deployment.metadata.namespace, deployment.spec.inference_server.name),)


async def test_an_index_follows_what_objects_refer_to() -> None:
    async with running(added(a_deployment(1)), synced(1)) as bench:
        index = bench.informer.index(servers_of)
        assert keys_by(index)(SERVER) == (KEY,)
        await bench.store.play(modified(a_deployment(2, server="is2")))
        assert keys_by(index)(SERVER) == ()
        assert keys_by(index)(Key("ns", "is2")) == (KEY,)


async def test_an_index_keeps_the_other_objects_of_a_value() -> None:
    start = (added(a_deployment(1)), added(a_deployment(2, name="d2", uid="u2")), synced(2))
    async with running(*start) as bench:
        index = bench.informer.index(servers_of)
        await bench.store.play(deleted(a_deployment(1), 3))
        assert keys_by(index)(SERVER) == (Key("ns", "d2"),)


async def test_both_the_old_and_the_new_server_of_a_moved_deployment_are_woken() -> None:
    async with running(added(a_deployment(1)), synced(1)) as bench:
        keys: list[Key] = []
        enqueue_related(bench.informer, keys.append, servers_of)
        await bench.store.play(modified(a_deployment(2, server="is2")))
        assert keys == [SERVER, SERVER, Key("ns", "is2")]


async def test_an_announcement_wakes_every_object_it_concerns() -> None:
    async with running(added(a_deployment(1)), synced(1)) as bench:
        keys: list[Key] = []
        signal: Signal[Key] = Signal()
        leave = enqueue_announced(signal, keys.append, keys_by(bench.informer.index(servers_of)))
        signal.announce(SERVER)
        signal.announce(Key("ns", "unknown"))
        leave()
        signal.announce(SERVER)
        assert keys == [KEY]


async def test_every_answer_of_the_store_reaches_the_informer() -> None:
    bench = Bench()
    store = WriteThroughStore(bench.store, [bench.informer])
    await store.create(a_deployment(1))
    await store.update(a_deployment(2))
    await store.update_status(a_deployment(3))
    bench.store.stored = a_deployment(4)
    await store.get(v2.Deployment, KEY)
    bench.store.stored = a_deployment(5)
    await store.find(v2.Deployment, KEY)
    assert [new for _, new in bench.told] == ["1", "2", "3", "4", "5"]


async def test_dry_runs_and_other_kinds_reach_no_informer() -> None:
    bench = Bench()
    store = WriteThroughStore(bench.store, [bench.informer])
    await store.create(a_deployment(1), dry_run=True)
    await store.update(a_deployment(2), dry_run=True)
    await store.create(v2.Model())
    assert await store.find(v2.Deployment, KEY) is None
    assert (await store.list(v2.Deployment)).items == ()
    await store.delete(v2.Deployment, KEY)
    assert bench.told == []
    assert bench.store.deleted == [KEY]


async def test_a_watch_through_the_store_is_the_stores() -> None:
    bench = Bench()
    store = WriteThroughStore(bench.store, [])
    await bench.store.play(synced(3), StopAsyncIteration())
    changes = [change.version async for change in store.watch(v2.Deployment, since="2")]
    assert changes == ["3"]
    assert bench.store.watched_since == ["2"]
