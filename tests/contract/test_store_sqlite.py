import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from maserve.store.sqlite import SqliteStore, StoreSettings
from maserve.testing.clock import FakeClock
from maserve.testing.store_contract import HISTORY_CHANGES, StoreContract


class TestSqliteStore(StoreContract):
    @pytest.fixture
    async def store(self, clock: FakeClock, tmp_path: Path) -> AsyncIterator[SqliteStore]:
        settings = StoreSettings(history_changes=HISTORY_CHANGES)
        rng = random.Random(1)
        async with SqliteStore(
            tmp_path / "store.db", clock=clock, rng=rng, settings=settings
        ) as store:
            yield store
