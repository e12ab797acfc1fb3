"""The rig of the gate tests."""

import pytest

from maserve.testing.clock import FakeClock
from maserve.testing.control_rig import ControlRig
from maserve.testing.store_fake import FakeStore


@pytest.fixture
def rig() -> ControlRig:
    clock = FakeClock()
    return ControlRig(FakeStore(clock=clock), clock)
