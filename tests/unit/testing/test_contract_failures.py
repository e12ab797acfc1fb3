"""What a contract suite says of an implementation that does not keep it."""

import asyncio
import sys
from pathlib import Path

import pytest

# A pytest of its own, because it is its words that count.
SUITE = """
import pytest

from maserve.testing.backend_contract import BackendContract
from maserve.testing.backend_fake import FakeBackend
from maserve.testing.clock import FakeClock
from maserve.testing.endpoints_contract import PublisherContract
from maserve.testing.endpoints_fake import FakePublisher
from maserve.testing.routing_contract import RoutingContract
from maserve.testing.world import FakeWorld
from maserve.base.signals import Signal


class Forgetful(FakePublisher):
    async def get(self, server):
        return {}


class TestForgetful(PublisherContract):
    @pytest.fixture
    def publisher(self):
        return Forgetful()


class StandingWorld:
    def __init__(self):
        world = FakeWorld(clock=FakeClock(), changed=Signal(), read_entries=lambda *_: ())
        self.backend = FakeBackend(world)

    async def until(self, holds):
        raise TimeoutError


class TestStanding(BackendContract):
    @pytest.fixture
    def world(self):
        return StandingWorld()


class TestUnfinished(RoutingContract):
    pass
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("suite")
    (folder / "test_suite.py").write_text(SUITE)
    (folder / "pytest.ini").write_text("[pytest]\nasyncio_mode = auto\n")
    return asyncio.run(run_pytest(folder))


async def run_pytest(folder: Path) -> str:
    names = "published_map_is_returned or comes_to_serve or missing_route_is_live"
    program = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", names, "."),
        cwd=folder,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    out, _ = await program.communicate()
    return out.decode()


def test_what_was_compared_is_shown(said: str) -> None:
    assert "AssertionError: assert {} == {'east'" in said


def test_a_server_that_does_not_come_to_serve_is_shown_as_it_is(said: str) -> None:
    assert "the server does not come to serve: ServerStatus(state=<ServerState.CREATING" in said


def test_the_fixture_that_is_missing_is_named(said: str) -> None:
    assert "the class that inherits the suite has a fixture `manager`" in said
