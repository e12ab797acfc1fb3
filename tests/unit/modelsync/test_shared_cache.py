"""Several replicas on one cache: who downloads, who uses what, and who removes it."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest

from maserve.artifacts import Cancel, content_id
from maserve.base.keys import ReplicaName
from maserve.modelsync.lock import locked
from maserve.testing.modelsync_rig import GRACE_S, InlineWorker, a_rig, an_entry

pytestmark = pytest.mark.looptime(noop_cycles=0)  # no threads, no sockets to wait for

M1 = "s3://b/m1"

T = TypeVar("T")


class LateWorker(InlineWorker):
    """Does the work at once, but says so only a second later."""

    async def run(self, work: Callable[[Cancel], T]) -> T:
        done = await super().run(work)
        await asyncio.sleep(1)
        return done


async def test_two_replicas_download_once_and_the_last_removes(tmp_path: Path) -> None:
    one, two = a_rig(tmp_path), a_rig(tmp_path, ReplicaName("r1"))
    two.source = one.source
    one.source.put(M1)
    one.set_list(an_entry("m", M1))
    async with one.running(), two.running():
        await one.until(lambda: one.serves("m", M1) and two.serves("m", M1))
        assert one.source.calls == [M1]
        one.set_list(an_entry("m", M1, phase="canary", canary_pod="r1"))
        await one.until(lambda: one.state("m") == "")
        await one.clock.sleep(5)
        assert two.serves("m", M1)
        assert (one.settings.cache / content_id(M1)).exists()
        one.set_list()
        await one.until(lambda: not (one.settings.cache / content_id(M1)).exists())


async def test_content_of_a_removed_replica_is_swept(tmp_path: Path) -> None:
    gone, left = a_rig(tmp_path), a_rig(tmp_path, ReplicaName("r1"))
    gone.source.put(M1)
    gone.set_list(an_entry("m", M1))
    async with gone.running():
        await gone.until(lambda: gone.serves("m", M1))
    gone.settings.repository.rename(tmp_path / "elsewhere")
    gone.set_list()
    async with left.running():
        await left.until(lambda: left.required() == [])
        assert not (left.settings.cache / content_id(M1)).exists()


async def test_what_a_running_model_leaves_in_its_folder_costs_no_download(tmp_path: Path) -> None:
    one, two = a_rig(tmp_path), a_rig(tmp_path, ReplicaName("r1"))
    two.source = one.source
    one.source.put(M1)
    one.set_list(an_entry("m", M1))
    async with one.running():
        await one.until(lambda: one.serves("m", M1))
        bytecode = one.settings.cache / content_id(M1) / "model/1/__pycache__/model.pyc"
        bytecode.parent.mkdir()
        bytecode.write_text("of the first replica")
        async with two.running():
            await two.until(lambda: two.serves("m", M1))
    assert one.source.calls == [M1]
    assert bytecode.exists()


async def test_replica_that_lets_go_while_another_does_leaves_nothing(tmp_path: Path) -> None:
    one, two = a_rig(tmp_path), a_rig(tmp_path, ReplicaName("r1"))
    one.worker = LateWorker()
    two.settings = replace(two.settings, unload_grace_s=GRACE_S + 1.5)
    two.source = one.source
    one.source.put(M1)
    one.set_list(an_entry("m", M1))
    async with one.running(), two.running():
        await one.until(lambda: one.serves("m", M1) and two.serves("m", M1))
        one.set_list()
        await one.until(lambda: one.state("m") == two.state("m") == "")
        await one.until(lambda: not (one.settings.cache / content_id(M1)).exists())


async def test_model_listed_again_while_it_is_let_go_is_kept(tmp_path: Path) -> None:
    rig = a_rig(tmp_path)
    rig.source.put(M1)
    rig.set_list(an_entry("m", M1))
    async with rig.running():
        await rig.until(lambda: rig.serves("m", M1))
        async with locked(rig.settings.cache / "locks" / content_id(M1), rig.clock):
            rig.set_list()
            await rig.until(lambda: rig.state("m") == "")
            rig.set_list(an_entry("m", M1))
            await rig.clock.sleep(5)
        await rig.until(lambda: rig.serves("m", M1))
        await rig.clock.sleep(5)
        assert (rig.settings.cache / content_id(M1) / "users" / "r0").exists()


async def test_download_broken_off_at_its_very_end_leaves_nothing(tmp_path: Path) -> None:
    rig = a_rig(tmp_path)
    rig.worker = LateWorker()
    rig.source.put(M1)
    rig.set_list(an_entry("m", M1))
    content = rig.settings.cache / content_id(M1)
    async with rig.running():
        await rig.until((content / "users" / "r0").exists)
        rig.set_list()
        await rig.until(lambda: not content.exists())


async def test_what_else_is_in_the_volume_of_the_cache_stays(tmp_path: Path) -> None:
    rig = a_rig(tmp_path)
    (rig.settings.cache / "lost+found").mkdir(parents=True)
    (rig.settings.cache / "notes.txt").write_text("")
    rig.set_list()
    async with rig.running():
        await rig.until(lambda: rig.required() == [])
    assert {"lost+found", "notes.txt"} <= {path.name for path in rig.settings.cache.iterdir()}


async def test_broken_note_of_a_user_does_not_hold_up_the_rest(tmp_path: Path) -> None:
    rig = a_rig(tmp_path)
    users = rig.settings.cache / content_id(M1) / "users"
    users.mkdir(parents=True)
    (users / "r9").write_bytes(b"\xff\0")
    rig.set_list()
    async with rig.running():
        await rig.until(lambda: rig.required() == [])
        assert not users.exists()
