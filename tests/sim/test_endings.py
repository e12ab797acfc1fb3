"""The end of a server, with trouble in each of its steps: nothing is left in the end."""

from collections.abc import Awaitable, Callable

import pytest

from maserve.base.errors import Conflict, Unavailable
from maserve.base.keys import ClusterId
from maserve.inferenceserver.stock.teardown import discovery_route, traffic_route
from maserve.testing.builders import a_target
from maserve.testing.simulation import Simulation
from maserve.testing.stories import SERVER, deletion, first_rollout, remove, tell
from maserve.testing.taps import Fault, Tap
from maserve.testing.virtually import run_virtually, told
from maserve.wire import v2

pytestmark = [pytest.mark.slow, pytest.mark.timeout(90)]  # a deletion for every write of one

Act = Callable[[Simulation], Awaitable[None]]


def left(sim: Simulation) -> list[object]:
    """Return everything that there still is, of whatever kind."""
    lists = [sim.model_config.find_entries(SERVER, ClusterId(cluster)) for cluster in ("c1", "c2")]
    kept = [entries for entries in lists if entries is not None]
    servers = sim.fake_store.peek_all(v2.InferenceServer)
    return [*servers, *sim.world.groups, *sim.publisher.published, *sim.routes._routes, *kept]


async def without_routes(sim: Simulation) -> None:
    """Delete a server whose routes somebody removes by hand in that moment."""
    await remove(sim, v2.InferenceServer, SERVER)
    await sim.routes.delete(None, discovery_route(SERVER))
    for target in (a_target("c1"), a_target("c2")):
        await sim.routes.delete(target, traffic_route(SERVER, target))
    await sim.until(v2.InferenceServer, SERVER, lambda found: found is None)


async def decommission(sim: Simulation) -> None:
    """Decommission the server, then delete the object, which has nothing any more."""
    while True:
        server = await sim.store.find(v2.InferenceServer, SERVER)
        if server is None or server.spec.decom_spec.decommission:
            break
        server.spec.decom_spec.decommission = True
        try:
            await sim.store.update(server)
        except Conflict:
            continue
    await sim.until(v2.InferenceServer, SERVER, _is_decommissioned)
    await remove(sim, v2.InferenceServer, SERVER)
    await sim.until(v2.InferenceServer, SERVER, lambda found: found is None)


def _is_decommissioned(server: v2.InferenceServer | None) -> bool:
    done = v2.INFERENCE_SERVER_STATE_DELETED
    return server is None or server.status.state == done


@pytest.mark.parametrize("fault", [Fault.ERROR_BEFORE, Fault.ERROR_AFTER, Fault.CRASH_AFTER])
@pytest.mark.parametrize("story", [deletion, without_routes, decommission])
def test_trouble_at_any_write_of_an_end_leaves_nothing(story: Act, fault: Fault) -> None:
    writes = run_virtually(_writes(story))
    assert writes >= 8
    kept = {at: run_virtually(_end(story, fault, at)) for at in range(1, writes + 1)}
    assert {at: what for at, what in kept.items() if what} == {}


async def _writes(story: Act) -> int:
    sim = await told(first_rollout)
    return (await tell(sim, story, Tap(lambda _: None))).count


async def _end(story: Act, fault: Fault, at: int) -> list[object]:
    sim = await told(first_rollout)
    await tell(sim, story, Tap(lambda _: None, fault=fault, at=at, error=Unavailable("timed out")))
    return left(sim)
