import pytest

from maserve.testing.clock import FakeClock
from maserve.testing.store_contract import HISTORY_CHANGES, StoreContract
from maserve.testing.store_fake import FakeStore


class TestFakeStore(StoreContract):
    @pytest.fixture
    def store(self, clock: FakeClock) -> FakeStore:
        return FakeStore(clock=clock, history_changes=HISTORY_CHANGES)
