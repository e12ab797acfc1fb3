"""Whole controllers, one pass at a time, on a real store with fake ports and a fake clock."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from maserve.deployment.stock import RolloutSettings
from maserve.store.sqlite import SqliteStore
from maserve.testing.clock import FakeClock
from maserve.testing.control_rig import ControlRig


@pytest.fixture
def settings() -> RolloutSettings:
    return RolloutSettings(model_load_timeout_s=60.0, rollback_model_load_timeout_s=60.0)


@pytest.fixture
async def rig(tmp_path: Path, settings: RolloutSettings) -> AsyncIterator[ControlRig]:
    clock = FakeClock()
    async with SqliteStore(tmp_path / "store.db", clock=clock) as store:
        yield ControlRig(store, clock, settings=settings)
