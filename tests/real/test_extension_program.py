"""The control plane of the page about Deployment plugins, as the program that the page makes."""

import asyncio
import json
import re
from pathlib import Path

import pytest

from maserve.base.keys import Key
from maserve.resource import from_yaml
from maserve.testing.live import live_control_plane
from maserve.wire import v2

# Starts the whole program, on a machine that does other things too.
pytestmark = [pytest.mark.real, pytest.mark.timeout(60)]

PAGE = Path(__file__).parents[2] / "docs" / "extend" / "deployment-plugin.md"
FILE = re.compile(r"^```python\n# (\w+\.py)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MANIFEST = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def a_program_of_the_page(folder: Path) -> str:
    """Write the page's files and return the one to run."""
    for name, text in FILE.findall(PAGE.read_text()):
        (folder / name).write_text(text)
    return str(folder / "my_controllermgr.py")


def the_manifest_of_the_page() -> v2.Deployment:
    (text,) = MANIFEST.findall(PAGE.read_text())
    (manifest,) = from_yaml(text)
    assert isinstance(manifest.resource, v2.Deployment)
    return manifest.resource


async def test_program_of_the_page_rolls_its_deployment_out_and_ends(tmp_path: Path) -> None:
    wanted = the_manifest_of_the_page()
    key = Key(wanted.metadata.namespace, wanted.metadata.name)
    program = (a_program_of_the_page(tmp_path),)
    async with live_control_plane(tmp_path, {}, program) as plane, asyncio.timeout(30):
        catalog = plane.data / "catalog.json"
        await plane.client.create(wanted)
        await plane.client.wait_until(
            v2.Deployment,
            key,
            lambda now: (
                now is not None and now.status.stage == v2.DEPLOYMENT_STAGE_ROLLOUT_COMPLETE
            ),
        )
        assert json.loads(catalog.read_text()) == {"digits/nightly": "digits-v2"}

        await plane.client.delete(v2.Deployment, key)
        await plane.client.wait_until(v2.Deployment, key, lambda now: now is None)
        assert json.loads(catalog.read_text()) == {}

        assert await plane.stop() == 0
        assert "nothing runs on" in await plane.down()
        assert plane.leftovers() == ()
