import asyncio
import json
from itertools import pairwise
from pathlib import Path

import pytest

from maserve.base.errors import Denied, Invalid, Problem, Unavailable
from maserve.host import signature_of
from maserve.modelsync.lock import locked
from maserve.testing.modelsync_rig import GRACE_S, SyncRig, a_rig, an_entry

pytestmark = pytest.mark.looptime(noop_cycles=0)  # no threads, no sockets to wait for

M1, M2 = "s3://b/m1", "s3://b/m2"


@pytest.fixture
def rig(tmp_path: Path) -> SyncRig:
    rig = a_rig(tmp_path)
    rig.source.put(M1)
    rig.source.put(M2)
    return rig


async def test_listed_model_is_loaded_and_required(rig: SyncRig) -> None:
    rig.set_list(an_entry("m", M1))
    async with rig.running():
        await rig.until(lambda: rig.required() == ["m"])
        assert rig.serves("m", M1)
        assert rig.state("m") == "LOADED"


async def test_change_of_the_list_is_noticed_within_a_tenth_of_a_second(rig: SyncRig) -> None:
    rig.set_list()
    async with rig.running():
        await rig.until(lambda: rig.required() == [])
        await rig.clock.sleep(0.5)
        rig.set_list(an_entry("m", M1))
        await rig.until(lambda: rig.engine.calls("load") == ["m"], within_s=0.15)


async def test_list_in_a_mounted_config_map_is_followed(rig: SyncRig, tmp_path: Path) -> None:
    mount = tmp_path / "mount"
    (mount / "v1").mkdir(parents=True)
    (mount / "v2").mkdir()
    (mount / "v1/model-list.json").write_text("[]")
    (mount / "v2/model-list.json").write_text(json.dumps([{"name": "m", "storage_path": M1}]))
    (mount / "..data").symlink_to("v1")
    (mount / "model-list.json").symlink_to("..data/model-list.json")
    sync = rig.build(model_config=mount, list_lock=None)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(sync.run())
        await rig.until(lambda: rig.required() == [])
        (mount / "..new").symlink_to("v2")
        (mount / "..new").replace(mount / "..data")
        await rig.until(lambda: rig.required() == ["m"])
        task.cancel()


async def test_cleared_model_leaves_the_list_then_waits_then_unloads(rig: SyncRig) -> None:
    rig.set_list(an_entry("m", M1))
    async with rig.running():
        await rig.until(lambda: rig.required() == ["m"])
        rig.set_list()
        await rig.until(lambda: rig.required() == [])
        dropped_at = rig.clock.monotonic()
        assert rig.serves("m", M1)
        assert rig.state("m") == "UNLOADING"
        await rig.until(lambda: rig.engine.calls("unload") == ["m"])
        assert rig.engine.journal[-1][0] - dropped_at >= GRACE_S - 0.1
        await rig.until(lambda: rig.state("m") == "")
        await rig.until(lambda: not list(rig.settings.cache.glob("*/model")))
        assert not list(rig.settings.repository.iterdir())


async def test_model_added_again_in_its_grace_is_kept(rig: SyncRig) -> None:
    rig.set_list(an_entry("m", M1))
    async with rig.running():
        await rig.until(lambda: rig.required() == ["m"])
        rig.set_list()
        await rig.until(lambda: rig.required() == [])
        await rig.clock.sleep(GRACE_S / 2)
        rig.set_list(an_entry("m", M1, deployment="d2"))
        await rig.until(lambda: rig.required() == ["m"])
        await rig.clock.sleep(3 * GRACE_S)
        assert rig.engine.calls("unload") == []
        assert rig.engine.calls("load") == ["m"]


async def test_unload_waits_for_the_writer_of_the_list_and_reads_it_again(rig: SyncRig) -> None:
    lock = rig.settings.list_lock
    assert lock is not None
    rig.set_list(an_entry("m", M1))
    async with rig.running():
        await rig.until(lambda: rig.required() == ["m"])
        rig.set_list()
        await rig.until(lambda: rig.required() == [])
        async with locked(lock, rig.clock):
            await rig.clock.sleep(GRACE_S + 1)
            assert rig.engine.calls("unload") == []
            rig.set_list(an_entry("m", M1))
        await rig.until(lambda: rig.required() == ["m"])
        await rig.clock.sleep(3 * GRACE_S)
        assert rig.engine.calls("unload") == []


async def test_model_of_two_deployments_goes_with_the_last(rig: SyncRig) -> None:
    first, second = an_entry("m", M1), an_entry("m", M1, deployment="d2", phase="staged")
    rig.set_list(first, second)
    async with rig.running():
        await rig.until(lambda: rig.required() == ["m"])
        rig.set_list(second)
        await rig.until(lambda: rig.required() == [])
        await rig.clock.sleep(3 * GRACE_S)
        assert rig.engine.calls("unload") == []
        rig.set_list()
        await rig.until(lambda: rig.engine.calls("unload") == ["m"])


async def test_bad_model_does_not_hold_up_another(rig: SyncRig) -> None:
    rig.source.held[M1] = asyncio.Event()
    rig.source.errors["s3://b/denied"] = Denied("no access")
    rig.source.put("s3://b/broken", {"1/model.py": "", "1/fails": "boom"})
    rig.set_list(
        an_entry("a-hanging", M1, phase="staged"),
        an_entry("b-denied", "s3://b/denied", phase="staged"),
        an_entry("c-broken", "s3://b/broken", phase="staged"),
        an_entry("d-odd", "nothing", phase="staged"),
        an_entry("../e", M2, phase="staged"),
        an_entry("good", M2),
    )
    async with rig.running():
        await rig.until(lambda: rig.required() == ["good"], within_s=5)
        states = [rig.state(name) for name in ("a-hanging", "b-denied", "c-broken", "d-odd")]
    assert states == ["DOWNLOADING", "DOWNLOAD_FAILED", "LOAD_FAILED", "VERIFY_FAILED"]
    assert rig.state("../e") == "VERIFY_FAILED"


async def test_engine_that_starts_anew_gets_everything_and_the_list_stays(rig: SyncRig) -> None:
    rig.set_list(an_entry("m", M1), an_entry("n", M2))
    async with rig.running():
        await rig.until(lambda: rig.required() == ["m", "n"])
        rig.engine.down = True
        await rig.clock.sleep(5)
        rig.engine.restart()
        rig.engine.down = False
        assert rig.required() == ["m", "n"]
        await rig.until(lambda: rig.serves("m", M1) and rig.serves("n", M2), within_s=3)
        assert rig.source.calls == [M1, M2]


async def test_restart_beside_a_running_engine_touches_nothing(rig: SyncRig) -> None:
    rig.set_list(an_entry("m", M1))
    async with rig.running():
        await rig.until(lambda: rig.state("m") == "LOADED")
    before = rig.settings.readiness_file.stat()
    async with rig.running():
        await rig.clock.sleep(10)
    after = rig.settings.readiness_file.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert rig.engine.calls("load") == ["m"]


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"\xff\0", b"[]", b'{"models": {"m": 1}}'],
    ids=["empty", "cut", "bytes", "list", "shape"],
)
async def test_broken_files_of_an_earlier_life_do_not_keep_it_from_starting(
    rig: SyncRig, data: bytes
) -> None:
    rig.settings.private.mkdir()
    rig.settings.status_file.write_bytes(data)
    rig.settings.readiness_file.write_bytes(data)
    (rig.settings.private / "applied.json").write_bytes(data)
    rig.set_list(an_entry("m", M1))
    async with rig.running():
        await rig.until(lambda: rig.serves("m", M1))
        await rig.clock.sleep(5)
    assert rig.required() == ["m"]
    assert rig.state("m") == "LOADED"


async def test_readiness_file_of_an_earlier_life_is_taken_away(rig: SyncRig) -> None:
    rig.settings.readiness_file.write_text('{"required": [], "pending": []}')
    rig.source.held[M1] = asyncio.Event()
    rig.set_list(an_entry("m", M1))
    async with rig.running():
        await rig.until(lambda: rig.required() is None)
        await rig.clock.sleep(5)
        assert rig.required() is None
        rig.source.held.pop(M1).set()
        await rig.until(lambda: rig.required() == ["m"])


async def test_removed_readiness_file_comes_back_only_with_everything_loaded(rig: SyncRig) -> None:
    rig.set_list(an_entry("m", M1), an_entry("n", M2))
    async with rig.running():
        await rig.until(lambda: rig.required() == ["m", "n"])
        rig.engine.restart()
        rig.settings.readiness_file.unlink()
        await rig.until(lambda: rig.required() is not None)
        assert rig.serves("m", M1)
        assert rig.serves("n", M2)


async def test_replica_that_cannot_load_a_serving_model_stays_not_ready(rig: SyncRig) -> None:
    rig.source.put(M1, {"1/model.py": "", "1/fails": "boom"})
    rig.set_list(an_entry("m", M1), an_entry("n", M2))
    async with rig.running():
        await rig.until(lambda: rig.state("n") == "LOADED")
        await rig.clock.sleep(60)
        assert rig.required() is None
        assert (rig.state("m"), rig.status("m")["reason"]) == ("LOAD_FAILED", "boom")


@pytest.mark.parametrize(
    "text", ["{", "null", "[1]", '[{"storage_path": "s3://b/m"}]', '[{"name": "m", "phase": 1}]']
)
async def test_list_that_cannot_be_read_takes_nothing_away(rig: SyncRig, text: str) -> None:
    rig.set_list(an_entry("m", M1))
    async with rig.running():
        await rig.until(lambda: rig.required() == ["m"])
        rig.set_list_text(text)
        await rig.clock.sleep(10 * GRACE_S)
        assert rig.required() == ["m"]
        assert rig.engine.calls("unload") == []
        assert json.loads(rig.settings.status_file.read_text())["problem"]


async def test_list_that_vanished_takes_nothing_away(rig: SyncRig) -> None:
    rig.set_list(an_entry("m", M1))
    async with rig.running():
        await rig.until(lambda: rig.required() == ["m"])
        rig.settings.model_config.unlink()
        await rig.clock.sleep(10 * GRACE_S)
    async with rig.running():
        await rig.clock.sleep(10 * GRACE_S)
    assert rig.required() == ["m"]
    assert rig.serves("m", M1)


async def test_list_that_never_was_is_empty(rig: SyncRig) -> None:
    async with rig.running():
        await rig.until(lambda: rig.required() == [])


async def test_canary_is_loaded_on_its_replica_only(rig: SyncRig) -> None:
    rig.set_list(
        an_entry("here", M1, phase="canary", canary_pod="r0"),
        an_entry("there", M2, phase="canary", canary_pod="r1"),
    )
    async with rig.running():
        await rig.until(lambda: rig.state("here") == "LOADED")
        await rig.clock.sleep(5)
    assert rig.engine.calls("load") == ["here"]
    assert rig.required() == []


async def test_failed_load_stays_to_be_seen_and_is_tried_again_later_and_later(
    rig: SyncRig,
) -> None:
    rig.source.put(M1, {"1/model.py": "", "1/fails": "boom"})
    rig.set_list(an_entry("m", M1))
    async with rig.running():
        await rig.until(lambda: len(rig.engine.journal) == 4, within_s=60)
    times = [at for at, _, _ in rig.engine.journal]
    gaps = [round(later - earlier) for earlier, later in pairwise(times)]
    assert [gap // 5 for gap in gaps] == [1, 2, 4]


async def test_reason_of_many_pages_is_cut_in_its_middle(rig: SyncRig) -> None:
    pages = f"what is wrong {'x' * 50_000} where it is"
    rig.source.put(M1, {"1/model.py": "", "1/fails": pages})
    rig.set_list(an_entry("m", M1, phase="staged"))
    async with rig.running():
        await rig.until(lambda: rig.state("m") == "LOAD_FAILED")
        reason = rig.status("m")["reason"]
    assert reason.startswith("what is wrong x")
    assert reason.endswith("x where it is")
    assert len(reason) < 2100


async def test_passing_trouble_of_the_storage_is_retried(rig: SyncRig) -> None:
    rig.source.errors[M1] = Unavailable("timed out")
    rig.set_list(an_entry("m", M1))
    async with rig.running():
        await rig.until(lambda: rig.state("m") == "DOWNLOAD_FAILED")
        row = rig.status("m")
        assert (row["permanent"], row["reason"]) == (False, "timed out")
        assert list(rig.settings.repository.iterdir()) == []
        del rig.source.errors[M1]
        await rig.until(lambda: rig.serves("m", M1))


async def test_refused_artifact_is_shown_in_the_index_until_it_is_repaired(rig: SyncRig) -> None:
    rig.source.errors[M1] = Invalid(Problem("archive", "member '../x' climbs out"))
    rig.set_list(an_entry("m", M1))
    async with rig.running():
        await rig.until(lambda: "climbs out" in rig.engine.failed.get("m", ""))
        row = rig.status("m")
        assert (row["state"], row["permanent"]) == ("VERIFY_FAILED", True)
        del rig.source.errors[M1]
        await rig.until(lambda: rig.serves("m", M1), within_s=120)
        await rig.until(lambda: rig.state("m") == "LOADED")


async def test_refused_model_that_is_dropped_leaves_nothing(rig: SyncRig) -> None:
    rig.set_list(an_entry("m", "s3://b/none", phase="staged"))
    async with rig.running():
        await rig.until(lambda: "not found" in rig.engine.failed.get("m", ""))
        rig.set_list()
        await rig.until(lambda: not list(rig.settings.repository.iterdir()))
        assert not list((rig.settings.private / "failed").iterdir())


async def test_wrong_layout_is_refused_with_every_problem(rig: SyncRig) -> None:
    rig.source.put(M1, {"model.onnx": "", "config.pbtxt": 'name: "other"'})
    rig.set_list(an_entry("m", M1))
    async with rig.running():
        await rig.until(lambda: rig.state("m") == "VERIFY_FAILED")
        reason = rig.status("m")["reason"]
    assert "needs a version folder" in reason
    assert "names model 'other', not 'm'" in reason
    assert rig.engine.contents == {}


async def test_folder_of_somebody_else_is_left_alone(rig: SyncRig) -> None:
    (rig.settings.repository / "m" / "1").mkdir(parents=True)
    (rig.settings.repository / "other" / "1").mkdir(parents=True)
    rig.set_list(an_entry("m", M1, phase="staged"))
    async with rig.running():
        await rig.until(lambda: rig.state("m") == "LOAD_FAILED")
        await rig.clock.sleep(10 * GRACE_S)
    assert "by somebody else" in rig.status("m")["reason"]
    assert sorted(path.name for path in rig.settings.repository.iterdir()) == ["m", "other"]
    assert rig.engine.calls("unload") == []


async def test_entry_that_was_out_between_two_looks_is_tried_anew(rig: SyncRig) -> None:
    entry = an_entry("m", "s3://b/late")
    rig.set_list(entry)
    async with rig.running():
        await rig.until(lambda: rig.state("m") == "DOWNLOAD_FAILED")
        rig.source.put("s3://b/late")
        rig.set_list()
        rig.set_list(entry)
        await rig.until(lambda: rig.state("m") == "LOADED", within_s=5)


async def test_status_says_which_list_it_is_about(rig: SyncRig) -> None:
    async with rig.running():
        for entries in ([], [an_entry("m", M1)], []):
            rig.set_list(*entries)
            await rig.until(lambda: is_about_the_list(rig))


def is_about_the_list(rig: SyncRig) -> bool:
    path = rig.settings.status_file
    told = json.loads(path.read_text())["list"] if path.exists() else None
    return told == list(signature_of(rig.settings.model_config))


async def test_load_call_without_an_answer_is_no_failure(rig: SyncRig) -> None:
    rig.engine.load_s = 30
    rig.set_list(an_entry("m", M1))
    async with rig.running():
        await rig.until(lambda: rig.engine.calls("load") == ["m"])
        rig.engine.down = True
        await rig.clock.sleep(31)
        rig.engine.down = False
        rig.engine.load_s = 0.5
        await rig.until(lambda: rig.required() == ["m"])
        await rig.until(lambda: rig.state("m") == "LOADED")


async def test_load_that_never_ends_is_said_also_to_those_who_come_later(rig: SyncRig) -> None:
    rig.engine.load_s = 1e6
    rig.set_list(an_entry("m", M1))
    async with rig.running():
        await rig.until(lambda: rig.engine.calls("load") == ["m"])
    async with rig.running():
        await rig.until(lambda: "earlier load" in rig.status("m").get("reason", ""))
        assert rig.state("m") == "LOADING"
        rig.set_list()
        await rig.until(lambda: rig.state("m") == "UNLOADING")
        assert "earlier load" in rig.status("m")["reason"]


async def test_loads_that_never_end_hold_up_nothing_once_they_are_not_wanted(rig: SyncRig) -> None:
    rig.engine.load_s = 1e6
    names = [f"hangs{number}" for number in range(rig.settings.parallel_loads)]
    rig.set_list(*(an_entry(name, M1, phase="staged") for name in names))
    async with rig.running():
        await rig.until(lambda: sorted(rig.engine.calls("load")) == names)
        rig.engine.load_s = 0.5
        rig.set_list(an_entry("m", M2, phase="staged"))
        await rig.until(lambda: rig.state("m") == "LOADED", within_s=5)


async def test_once_brings_up_what_can_be(rig: SyncRig) -> None:
    rig.set_list(an_entry("m", M1), an_entry("bad", "s3://b/none"))
    await rig.build().run_once()
    assert rig.serves("m", M1)
    assert rig.state("m") == "LOADED"
    assert "not found" in rig.engine.failed["bad"]


async def test_status_that_cannot_be_written_holds_up_nothing(rig: SyncRig) -> None:
    rig.settings.status_file.mkdir()
    rig.set_list(an_entry("m", M1))
    async with rig.running():
        await rig.until(lambda: rig.required() == ["m"])
        rig.set_list()
        await rig.until(lambda: rig.engine.calls("unload") == ["m"])
        rig.settings.status_file.rmdir()
        await rig.until(rig.settings.status_file.exists)


async def test_failure_that_cannot_be_published_stays_what_it_is(rig: SyncRig) -> None:
    rig.settings.private.mkdir()
    (rig.settings.private / "failed").write_text("in the way")
    rig.set_list(an_entry("m", "s3://b/none", phase="staged"))
    async with rig.running():
        await rig.until(lambda: rig.state("m") == "DOWNLOAD_FAILED")
        await rig.clock.sleep(30)
        assert rig.status("m")["permanent"]
        (rig.settings.private / "failed").unlink()
        await rig.until(lambda: "not found" in rig.engine.failed.get("m", ""))


async def test_nothing_is_written_at_rest(rig: SyncRig) -> None:
    rig.set_list(an_entry("m", M1))
    async with rig.running():
        await rig.until(lambda: rig.state("m") == "LOADED")
        before = rig.settings.status_file.stat().st_mtime_ns
        await rig.clock.sleep(60)
        assert rig.settings.status_file.stat().st_mtime_ns == before
