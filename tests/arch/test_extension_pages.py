"""The code on the pages about extending is complete: it is taken from them and run."""

import asyncio
import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from maserve.apiserver import Extensions
from maserve.base.keys import ClusterId, Key
from maserve.cmd import controllermgr, serving
from maserve.cmd.settings import Settings
from maserve.cmd.transitions import Teller
from maserve.cmd.wiring import Module, WiringError, build_container
from maserve.deployment import DeploymentController, SimpleRegistrar
from maserve.endpoints import Provider
from maserve.resource.metadata import is_deleting
from maserve.runtime import Again
from maserve.testing.builders import a_deployment
from maserve.testing.clock import FakeClock
from maserve.testing.endpoints_fake import FakeProvider
from maserve.testing.recorder import FakeRecorder
from maserve.testing.store_fake import FakeStore
from maserve.wire import v2

PAGES = Path(__file__).parents[2] / "docs" / "extend"
BLOCK = re.compile(r"^```python\n# (\w+)\.py\n(.*?)^```$", re.MULTILINE | re.DOTALL)
KEY = Key("team", "nightly")


@pytest.fixture(autouse=True)
def on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Write every file of the pages and let it be imported during the test."""
    blocks = [found for page in PAGES.glob("*.md") for found in BLOCK.findall(page.read_text())]
    names = [name for name, _ in blocks]
    assert len(set(names)) == len(names) > 0
    for name, text in blocks:
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    for name in names:
        sys.modules.pop(name, None)


def load(name: str) -> Any:
    module: ModuleType = importlib.import_module(name)
    return module


class Offline:
    """The example's plugin in a controller, on a store in memory."""

    def __init__(self, folder: Path) -> None:
        self.module = load("offline")
        clock = FakeClock()
        self.store = FakeStore(clock=clock)
        self.catalog = self.module.Catalog(folder / "catalog.json")
        plugins = SimpleRegistrar()
        self.module.register(plugins, self.catalog, clock)
        self.controller = DeploymentController(
            store=self.store, registrar=plugins, recorder=FakeRecorder(), clock=clock
        )

    async def create(self, model: str) -> None:
        deployment = a_deployment(desired=model)
        deployment.metadata.name, deployment.metadata.namespace = KEY.name, KEY.namespace
        deployment.spec.definition.type = v2.TARGET_TYPE_OFFLINE
        await self.store.create(deployment)

    async def want(self, model: str) -> None:
        deployment = await self.store.get(v2.Deployment, KEY)
        deployment.spec.desired_revision.name = model
        await self.store.update(deployment)

    async def settle(self) -> v2.Deployment | None:
        """Reconcile as long as something moves; return the Deployment, None when it is gone."""
        passes = 0
        while isinstance(await self.controller.reconcile(KEY), Again):
            passes += 1
            assert passes < 50
        return await self.store.find(v2.Deployment, KEY)


async def test_offline_deployment_is_rolled_out_to_the_catalog(tmp_path: Path) -> None:
    offline = Offline(tmp_path)
    await offline.create("m1")
    deployment = await offline.settle()
    assert deployment is not None
    assert deployment.status.stage == v2.DEPLOYMENT_STAGE_ROLLOUT_COMPLETE
    assert deployment.status.current_revision.name == "m1"
    assert offline.catalog.find(str(KEY)) == "m1"


async def test_offline_deployment_goes_on_to_the_next_model(tmp_path: Path) -> None:
    offline = Offline(tmp_path)
    await offline.create("m1")
    await offline.settle()
    await offline.want("m2")
    deployment = await offline.settle()
    assert deployment is not None
    assert deployment.status.current_revision.name == "m2"
    assert offline.catalog.find(str(KEY)) == "m2"


async def test_catalog_that_was_changed_by_hand_is_put_right(tmp_path: Path) -> None:
    offline = Offline(tmp_path)
    await offline.create("m1")
    await offline.settle()
    offline.catalog.put(str(KEY), "other")
    await offline.settle()
    assert offline.catalog.find(str(KEY)) == "m1"


async def test_deleted_offline_deployment_leaves_the_catalog(tmp_path: Path) -> None:
    offline = Offline(tmp_path)
    await offline.create("m1")
    deployment = await offline.settle()
    assert deployment is not None
    assert not is_deleting(deployment)
    await offline.store.delete(v2.Deployment, KEY)
    assert await offline.settle() is None
    assert offline.catalog.find(str(KEY)) == ""


def values(folder: Path) -> dict[type[Any], object]:
    return {Settings: Settings(data_dir=folder), Teller: Teller(print)}


async def test_copied_list_is_the_stock_list_and_the_example_and_fits(tmp_path: Path) -> None:
    modules = load("my_controllermgr").options()
    added = [module.name for module in modules if module not in controllermgr.options()]
    assert added == ["offline deployments"]
    assert [module for module in modules if module.name not in added] == list(
        controllermgr.options()
    )
    await build_container(modules, values(tmp_path)).close()


async def test_decorated_provider_is_what_everybody_gets() -> None:
    def stock() -> Provider:
        return FakeProvider()

    endpoints = load("my_endpoints")
    container = build_container((Module(name="stock", provide=(stock,)), endpoints.MY_ENDPOINTS))
    provider = await container.get(Provider)
    found = await provider.resolve(v2.ClusterTarget(cluster_id="edge"))
    assert found == endpoints.ELSEWHERE[ClusterId("edge")]
    assert await provider.resolve(v2.ClusterTarget(cluster_id="c1")) != found


def test_stock_plugin_beside_its_replacement_is_refused(tmp_path: Path) -> None:
    modules = (*controllermgr.options(), load("my_server_plugin").TEAM_PLUGIN)
    with pytest.raises(WiringError, match=r"inference server stock plugin.*team plugin"):
        build_container(modules, values(tmp_path))


async def test_replacement_in_place_of_the_stock_plugin_fits(tmp_path: Path) -> None:
    replaced = serving.INFERENCE_SERVER_STOCK_PLUGIN
    mine = load("my_server_plugin").TEAM_PLUGIN
    modules = [mine if module is replaced else module for module in controllermgr.options()]
    await build_container(modules, values(tmp_path)).close()


@pytest.mark.parametrize(("page", "name"), [("my_rules", "MY_RULES"), ("my_backend", "MY_BACKEND")])
async def test_module_of_a_page_fits_into_the_stock_list(
    page: str, name: str, tmp_path: Path
) -> None:
    modules = (*controllermgr.options(), getattr(load(page), name))
    await build_container(modules, values(tmp_path)).close()


def test_rule_of_the_page_names_what_is_missing() -> None:
    rules = load("my_rules")
    extensions = rules.with_rules(Extensions())
    (problem,) = extensions.problems_of(a_deployment())
    assert str(problem) == "metadata.annotations[example.com/contact] must say who is called"


async def run_tool(folder: Path, *words: str) -> str:
    """Run a tool on the pages' files, all of which must be well; return what it said."""
    program = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", *words),
        cwd=folder,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    out, _ = await program.communicate()
    assert program.returncode == 0, out.decode()
    return out.decode()


@pytest.mark.slow  # a pytest of its own on a busy machine
async def test_tests_of_the_pages_pass(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nasyncio_mode = auto\n")
    said = await run_tool(tmp_path, "pytest", "-q", "-p", "no:cacheprovider", ".")
    assert " passed" in said


@pytest.mark.slow  # reads all our types, once
@pytest.mark.timeout(90)
async def test_code_of_the_pages_passes_the_strict_type_check(tmp_path: Path) -> None:
    cache = PAGES.parents[1] / ".mypy_cache" / "extension-pages"
    names = sorted(path.name for path in tmp_path.glob("*.py"))
    said = await run_tool(tmp_path, "mypy", "--strict", f"--cache-dir={cache}", *names)
    assert f"no issues found in {len(names)} source files" in said
