"""What is downloaded, what replaces what, and what is left of it."""

import asyncio
import os
from pathlib import Path

import pytest

from maserve.artifacts import ArtifactUri, OnProgress, content_id
from maserve.testing.modelsync_rig import FakeSource, SyncRig, a_rig, an_entry

pytestmark = pytest.mark.looptime(noop_cycles=0)  # no threads, no sockets to wait for

M1, M2 = "s3://b/m1", "s3://b/m2"


class SlowToStop(FakeSource):
    """A download that never ends, and that takes its time once it is cancelled."""

    is_clean = False

    async def download(self, uri: ArtifactUri, into: Path, on_progress: OnProgress) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(10)
            self.is_clean = True


@pytest.fixture
def rig(tmp_path: Path) -> SyncRig:
    rig = a_rig(tmp_path)
    rig.source.put(M1)
    rig.source.put(M2)
    return rig


async def test_half_a_download_is_never_loaded(rig: SyncRig) -> None:
    rig.source.put(M1, {"1/model.py": "first half", "1/weights": "second half"})
    rig.source.held[M1] = asyncio.Event()
    rig.set_list(an_entry("m", M1))
    async with rig.running():
        await rig.until(lambda: rig.status("m").get("bytes_done", 0) > 0)
        await rig.clock.sleep(60)
    assert rig.engine.journal == []
    assert list(rig.settings.repository.iterdir()) == []
    assert list((rig.settings.cache / "tmp").iterdir()) == []
    assert not rig.settings.readiness_file.exists()


async def test_download_that_nobody_wants_any_more_is_broken_off(rig: SyncRig) -> None:
    rig.source.held[M1] = asyncio.Event()
    rig.set_list(an_entry("m", M1))
    async with rig.running():
        await rig.until(lambda: rig.state("m") == "DOWNLOADING")
        rig.set_list()
        await rig.until(lambda: rig.required() == [])
        await rig.until(lambda: not list((rig.settings.cache / "tmp").iterdir()))


async def test_download_that_is_broken_off_is_left_to_clean_up(rig: SyncRig) -> None:
    source = rig.source = SlowToStop()
    rig.set_list(an_entry("m", M1))
    async with rig.running():
        await rig.until(lambda: rig.state("m") == "DOWNLOADING")
        rig.set_list()
        await rig.until(lambda: source.is_clean)


async def test_leftovers_of_a_crash_are_removed(rig: SyncRig) -> None:
    leftover = rig.settings.cache / "tmp" / content_id(M1) / "model" / "1"
    leftover.mkdir(parents=True)
    (leftover / "model.py").write_text("half")
    rig.set_list()
    async with rig.running():
        await rig.until(lambda: rig.required() == [])
        assert list((rig.settings.cache / "tmp").iterdir()) == []


async def test_folder_cut_short_by_a_power_failure_is_downloaded_again(rig: SyncRig) -> None:
    rig.set_list(an_entry("m", M1))
    async with rig.running():
        await rig.until(lambda: rig.required() == ["m"])
    (rig.settings.cache / content_id(M1) / "model/1/model.py").write_text("")
    rig.engine.restart()
    async with rig.running():
        await rig.until(lambda: rig.serves("m", M1))
    assert rig.source.calls == [M1, M1]


async def test_changed_path_is_swapped_in_while_the_old_content_serves(rig: SyncRig) -> None:
    rig.set_list(an_entry("m", M1))
    async with rig.running():
        await rig.until(lambda: rig.required() == ["m"])
        rig.source.held[M2] = asyncio.Event()
        rig.set_list(an_entry("m", M2))
        await rig.until(lambda: rig.state("m") == "DOWNLOADING")
        await rig.clock.sleep(5)
        assert rig.serves("m", M1)
        assert rig.required() == ["m"]
        rig.source.held.pop(M2).set()
        await rig.until(lambda: rig.serves("m", M2))
        await rig.until(lambda: not (rig.settings.cache / content_id(M1)).exists())
        assert rig.engine.calls("unload") == []


@pytest.mark.parametrize("ahead_s", [0, 3600], ids=["older", "from before the clock went back"])
async def test_path_that_changes_back_to_what_is_still_here_is_loaded(
    rig: SyncRig, ahead_s: int
) -> None:
    staged = an_entry("keeps", M1, phase="staged")
    rig.set_list(an_entry("m", M1), staged)
    async with rig.running():
        await rig.until(lambda: rig.state("m") == rig.state("keeps") == "LOADED")
        rig.set_list(an_entry("m", M2), staged)
        await rig.until(lambda: rig.serves("m", M2))
        date = rig.engine.dates["m"] = rig.engine.dates["m"] + ahead_s * 10**9
        os.utime(rig.settings.repository / "m" / "1", ns=(date, date))
        rig.set_list(an_entry("m", M1), staged)
        await rig.until(lambda: rig.serves("m", M1))
        assert rig.source.calls == [M1, M2]


@pytest.mark.parametrize("lost", ["cache", f"cache/{content_id(M1)}/model/1/model.py"])
async def test_download_that_was_lost_is_made_again(
    rig: SyncRig, tmp_path: Path, lost: str
) -> None:
    rig.set_list(an_entry("m", M1))
    async with rig.running():
        await rig.until(lambda: rig.state("m") == "LOADED")
        (tmp_path / lost).rename(tmp_path / "lost")
        rig.engine.restart()
        await rig.until(lambda: rig.state("m") == "LOADED" and rig.serves("m", M1))
        assert rig.source.calls == [M1, M1]


async def test_path_that_changes_back_after_a_load_without_an_answer_is_loaded(
    rig: SyncRig,
) -> None:
    rig.set_list(an_entry("m", M1))
    async with rig.running():
        await rig.until(lambda: rig.state("m") == "LOADED")
        rig.engine.silent = True
        rig.set_list(an_entry("m", M2))
        await rig.until(lambda: rig.serves("m", M2))
        rig.engine.load_s = 30
        rig.set_list(an_entry("m", M1))
        await rig.until(lambda: len(rig.engine.calls("load")) == 3)
        rig.engine.down = True
        await rig.clock.sleep(31)
    rig.engine.down = rig.engine.silent = False
    async with rig.running():
        await rig.until(lambda: rig.state("m") == "LOADED", within_s=120)
        assert rig.serves("m", M1)


async def test_failed_swap_keeps_the_old_content(rig: SyncRig) -> None:
    rig.source.put(M2, {"1/model.py": M2, "1/fails": "boom"})
    rig.set_list(an_entry("m", M1))
    async with rig.running():
        await rig.until(lambda: rig.required() == ["m"])
        rig.set_list(an_entry("m", M2))
        await rig.until(lambda: rig.state("m") == "LOAD_FAILED")
        assert "earlier content keeps serving" in rig.status("m")["reason"]
        assert rig.serves("m", M1)
        assert (rig.settings.repository / "m/1/model.py").read_text() == M1
        assert rig.required() == ["m"]
