"""The fake backend keeps the contract that the real one keeps."""

from collections.abc import Awaitable, Callable

import pytest

from maserve.backends import Backend
from maserve.base.keys import Key, ModelName
from maserve.base.signals import Signal
from maserve.modelconfig import Entry
from maserve.testing.backend_contract import BackendContract, BackendWorld
from maserve.testing.backend_fake import FakeBackend
from maserve.testing.clock import FakeClock
from maserve.testing.modelconfig_fake import FakeModelConfigProvider
from maserve.testing.world import FakeWorld
from maserve.wire import v2

_LOOKS = 200


class FakeBackendWorld:
    """A backend on a fake world; every look lets a tenth of a second pass."""

    def __init__(self) -> None:
        self._clock = FakeClock()
        self._heard: list[Key] = []
        self._config = FakeModelConfigProvider()
        self._world = FakeWorld(
            clock=self._clock, changed=Signal(), read_entries=self._config.find_entries
        )
        self._backend = FakeBackend(self._world)

    @property
    def backend(self) -> Backend:
        return self._backend

    async def until(self, holds: Callable[[], Awaitable[bool]]) -> None:
        for _ in range(_LOOKS):
            await self._give_configs()
            if await holds():
                return
            self._clock.advance(0.1)
            self._heard += self._world.settle()
        raise TimeoutError

    async def want_model(
        self, server: Key, target: v2.ClusterTarget, model: ModelName, *, fails: str = ""
    ) -> None:
        self._world.broken.update({model: fails} if fails else {})
        entry = Entry(name=model, storage_path="file:///m/", deployment_name="d")
        await self._config.add_model_to_config(server, target, entry)

    def announced(self) -> list[Key]:
        return self._heard

    async def _give_configs(self) -> None:
        for server, cluster in self._world.groups:
            target = v2.ClusterTarget(cluster_id=cluster)
            await self._config.create_model_config(server, target, labels={}, annotations={})


class TestFakeBackend(BackendContract):
    @pytest.fixture
    def world(self) -> BackendWorld:
        return FakeBackendWorld()
