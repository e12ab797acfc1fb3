"""Several replicas on one cache: who downloads, who uses what, and who removes it."""

from pathlib import Path

import pytest

from maserve.artifacts import content_id
from maserve.base.keys import ReplicaName
from maserve.testing.modelsync_rig import a_rig, an_entry

pytestmark = pytest.mark.looptime

M1 = "s3://b/m1"


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
