"""The end of a server whose parts are not all there: no process, listener or file is left."""

import asyncio
from pathlib import Path

import pytest

from maserve.conditions import TRUE, find_condition
from maserve.testing.live import PROGRAM
from maserve.testing.live_story import SERVER, Story, a_story
from maserve.wire import v2

# Three control planes start, and a replica starts and drains.
pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]

NO_DISCOVERY = '''
"""The gateway takes no discovery route."""

from maserve.base.errors import Unavailable
from maserve.cmd.controllermgr import options as stock_options
from maserve.cmd.main import main
from maserve.cmd.wiring import Module
from maserve.routing import Manager


class NoDiscovery:
    def __init__(self, rest):
        self._rest = rest

    def __getattr__(self, name):
        return getattr(self._rest, name)

    async def create(self, target, route, config):
        if target is None:
            raise Unavailable("no discovery route can be made")
        await self._rest.create(target, route, config)


def without_discovery(stock: Manager) -> Manager:
    return NoDiscovery(stock)


def options():
    return (*stock_options(), Module(name="no discovery", decorate=(without_discovery,)))


main(options)
'''

NO_TRITON = '''
"""Nobody serves Triton's type here."""

from maserve.backends import BackendRegistry
from maserve.cmd.controllermgr import options as stock_options
from maserve.cmd.main import main
from maserve.cmd.wiring import Module


def without_triton(_: BackendRegistry) -> BackendRegistry:
    return BackendRegistry({})


def options():
    return (*stock_options(), Module(name="no triton", decorate=(without_triton,)))


main(options)
'''


def a_program(folder: Path, name: str, text: str) -> tuple[str, ...]:
    (folder / name).write_text(text)
    return (str(folder / name),)


def is_published(server: v2.InferenceServer | None) -> bool:
    conditions = server.status.conditions if server is not None else ()
    found = find_condition(conditions, "EndpointPublish")
    return found is not None and found.status == TRUE


def is_held(server: v2.InferenceServer | None) -> bool:
    """Tell whether the end of the server waits for its backend, and its state says that."""
    found = find_condition(server.status.conditions, "Cleanup") if server is not None else None
    has_reason = found is not None and found.reason == "BackendNotFound"
    failed = v2.INFERENCE_SERVER_STATE_FAILED
    return has_reason and server is not None and server.status.state == failed


async def restart(story: Story, program: tuple[str, ...]) -> None:
    """Kill the control plane and start another one on its data folder."""
    await story.plane.kill()
    story.plane.program = program
    await story.plane.start()


async def test_server_without_discovery_route_and_then_without_backend_ends_without_a_trace(
    tmp_path: Path,
) -> None:
    no_discovery = a_program(tmp_path, "no_discovery.py", NO_DISCOVERY)
    async with a_story(tmp_path, program=no_discovery) as story:
        await story.declare_server(clusters=("c1",), replicas=1)
        await story.client.wait_until(v2.InferenceServer, SERVER, is_published)
        assert "c1" in story.plane.traffic_rows()
        engines = await story.data_plane_of(engines=1)

        await restart(story, a_program(tmp_path, "no_triton.py", NO_TRITON))
        await story.client.delete(v2.InferenceServer, SERVER)
        async with asyncio.timeout(30):
            await story.client.wait_until(v2.InferenceServer, SERVER, is_held)
        view = await story.server_view()
        assert "DeletionHeld" in [event.reason for event in view.events]
        assert story.plane.data_plane_pids() == engines

        await restart(story, PROGRAM)
        await story.gone(v2.InferenceServer, SERVER)
        assert (story.plane.replica_files(), story.plane.traffic_rows()) == ((), ())
        assert list(story.plane.program_pids()) == ["envoy"]
        assert await story.plane.stop() == 0
        assert story.plane.leftovers() == ()
