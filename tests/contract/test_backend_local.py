"""The embedded Triton backend keeps the contract, with a fake engine as its program."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from maserve.backends import Backend
from maserve.base.keys import ClusterId, Key, ModelName
from maserve.testing.backend_contract import BackendContract, BackendWorld
from maserve.testing.fake_engine import FakeEngine
from maserve.testing.triton_stage import Stage, a_stage, fast_settings, kill_leftovers, until
from maserve.wire import v2


@dataclass
class LocalWorld:
    stage: Stage

    @property
    def backend(self) -> Backend:
        return self.stage.backend

    async def until(self, holds: Callable[[], Awaitable[bool]]) -> None:
        await until(holds)

    async def want_model(
        self, server: Key, target: v2.ClusterTarget, model: ModelName, *, fails: str = ""
    ) -> None:
        cluster = ClusterId(target.cluster_id)
        path = self.stage.folder.model_config(cluster, server)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps([{"name": model, "fails": fails}]))
        self.stage.backend.config_changed(server, cluster)

    def announced(self) -> list[Key]:
        return self.stage.announced


class TestLocalTritonBackend(BackendContract):
    @pytest.fixture
    async def world(self, tmp_path: Path) -> AsyncIterator[BackendWorld]:
        async with a_stage(tmp_path, fast_settings(), FakeEngine()) as stage:
            yield LocalWorld(stage)
            await stage.backend.stop_all()
        kill_leftovers(tmp_path)
