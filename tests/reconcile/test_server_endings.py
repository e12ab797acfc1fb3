"""The end of an InferenceServer, pass by pass: nothing is left, whatever was lost before."""

from collections.abc import Awaitable, Callable

import pytest

from maserve.base.errors import Unavailable
from maserve.base.keys import ClusterId
from maserve.base.signals import Signal
from maserve.conditions import UNKNOWN, find_condition
from maserve.inferenceserver.maker import MADE_BY
from maserve.inferenceserver.stock.teardown import discovery_route, traffic_route
from maserve.routing import RouteConfig, RouteId
from maserve.runtime import After
from maserve.testing.backend_fake import FakeBackend
from maserve.testing.builders import SERVER, a_target, an_inference_server
from maserve.testing.control_rig import ControlRig
from maserve.testing.world import FakeWorld
from maserve.wire import v2

DELETING = v2.INFERENCE_SERVER_STATE_DELETING
FAILED = v2.INFERENCE_SERVER_STATE_FAILED
SERVING = v2.INFERENCE_SERVER_STATE_SERVING
C1, C2 = ClusterId("c1"), ClusterId("c2")

Act = Callable[[ControlRig], Awaitable[None]]


@pytest.fixture
async def serving(rig: ControlRig) -> ControlRig:
    """Have a server that serves in two clusters."""
    await rig.store.create(an_inference_server(clusters=["c1", "c2"], replicas=2))
    await rig.run_server(rounds=8)
    return rig


async def delete(rig: ControlRig) -> None:
    await rig.store.delete(v2.InferenceServer, SERVER)
    await rig.run_server(rounds=8)
    assert await rig.store.find(v2.InferenceServer, SERVER) is None


async def decommission(rig: ControlRig) -> None:
    server = await rig.server()
    server.spec.decom_spec.decommission = True
    await rig.store.update(server)
    await rig.run_server(rounds=8)
    assert (await rig.server()).status.state == v2.INFERENCE_SERVER_STATE_DELETED


def left(rig: ControlRig) -> list[object]:
    """Return everything that there still is, of whatever kind."""
    lists = [rig.model_config.find_entries(SERVER, cluster) for cluster in (C1, C2)]
    kept = [entries for entries in lists if entries is not None]
    return [*rig.world.groups, *rig.publisher.published, *rig.routes._routes, *kept]


async def discovery_route_removed(rig: ControlRig) -> None:
    await rig.routes.delete(None, discovery_route(SERVER))


async def every_route_removed(rig: ControlRig) -> None:
    await discovery_route_removed(rig)
    for target in (a_target("c1"), a_target("c2")):
        await rig.routes.delete(target, traffic_route(SERVER, target))


async def nothing_resolved(rig: ControlRig) -> None:
    """Have the discovery Service without a single cluster, and no route to it."""
    rig.publisher.published[SERVER] = {}
    await every_route_removed(rig)


async def replicas_gone(rig: ControlRig) -> None:
    rig.world.groups.clear()


async def lists_gone(rig: ControlRig) -> None:
    for target in (a_target("c1"), a_target("c2")):
        await rig.model_config.delete_model_config(SERVER, target)


@pytest.mark.parametrize("end", [delete, decommission])
@pytest.mark.parametrize(
    "lost",
    [
        discovery_route_removed,
        every_route_removed,
        nothing_resolved,
        replicas_gone,
        lists_gone,
    ],
)
async def test_what_was_removed_by_hand_does_not_hide_the_rest(
    serving: ControlRig, lost: Act, end: Act
) -> None:
    await lost(serving)

    await end(serving)

    assert left(serving) == []


@pytest.mark.parametrize("end", [delete, decommission])
async def test_endpoints_of_a_server_without_a_discovery_route_are_not_left_published(
    rig: ControlRig, end: Act
) -> None:
    real = rig.routes.create

    async def create(target: v2.ClusterTarget | None, route: RouteId, config: RouteConfig) -> None:
        if target is None:
            raise Unavailable("the gateway takes no route")
        await real(target, route, config)

    rig.routes.create = create  # type: ignore[method-assign]  # fails for one route of three
    await rig.store.create(an_inference_server(clusters=["c1", "c2"]))
    await rig.run_server(rounds=8)
    assert list(rig.publisher.published[SERVER]) == ["c1", "c2"]

    await end(rig)

    assert left(rig) == []


async def test_an_end_waits_for_the_data_plane_to_let_go(serving: ControlRig) -> None:
    serving.routes.hold()
    await serving.store.delete(v2.InferenceServer, SERVER)
    await serving.run_server(rounds=8)

    held = await serving.server()
    assert held.status.conditions[0].reason == "DiscoveryRouteStillExists"
    assert len(serving.world.statuses(SERVER, C1)) == 2
    serving.routes.acknowledge()
    await serving.run_server(rounds=8)
    assert left(serving) == []


async def unregister(rig: ControlRig) -> None:
    """Go on as a control plane in which nobody has the backend."""
    rig.backends._backends.clear()


async def register_again(rig: ControlRig) -> None:
    rig.backends._backends[v2.BACKEND_TYPE_TRITON] = rig.backend


async def with_a_second_backend(rig: ControlRig) -> FakeWorld:
    world = FakeWorld(clock=rig.clock, changed=Signal(), read_entries=rig.world.read_entries)
    rig.backends._backends[v2.BACKEND_TYPE_LLM_D] = FakeBackend(world)
    return world


async def use_backend(rig: ControlRig, kind: "v2.BackendType") -> None:
    server = await rig.server()
    server.spec.backend_type = kind
    await rig.store.update(server)
    await rig.run_server(rounds=8)


async def test_a_deletion_without_its_backend_is_held_and_says_so(serving: ControlRig) -> None:
    await unregister(serving)
    await serving.store.delete(v2.InferenceServer, SERVER)
    await serving.run_server(rounds=8)

    held = await serving.server()
    cleanup = find_condition(held.status.conditions, "Cleanup")
    assert cleanup is not None
    assert (cleanup.status, cleanup.reason) == (UNKNOWN, "BackendNotFound")
    assert held.status.state == FAILED
    assert {row.message for row in held.status.cluster_statuses} == {
        "backend not found for type: BACKEND_TYPE_TRITON"
    }
    assert serving.recorder.reasons.count("DeletionHeld") == 1
    assert len(serving.world.statuses(SERVER, C1)) == 2
    await register_again(serving)
    await serving.run_server(rounds=8)
    assert left(serving) == []
    assert await serving.store.find(v2.InferenceServer, SERVER) is None


async def test_a_decommissioned_server_waits_for_its_backend_too(serving: ControlRig) -> None:
    await unregister(serving)
    server = await serving.server()
    server.spec.decom_spec.decommission = True
    await serving.store.update(server)
    await serving.run_server(rounds=8)
    assert (await serving.server()).status.state == FAILED

    await register_again(serving)
    await serving.run_server(rounds=8)

    done = await serving.server()
    assert done.status.state == v2.INFERENCE_SERVER_STATE_DELETED
    assert left(serving) == []


async def test_a_server_whose_backend_is_gone_is_told_of_and_left_running(
    serving: ControlRig,
) -> None:
    await unregister(serving)
    before = serving.writes

    await serving.run_server(rounds=8)

    ill = await serving.server()
    assert ill.status.state == FAILED
    assert ill.status.conditions[0].reason == "InvalidBackendType"
    assert ill.status.cluster_statuses[0].conditions[0].reason == "BackendNotFound"
    assert serving.recorder.reasons[-1] == "CreationFailed"
    assert serving.writes == before


async def test_a_server_of_a_type_that_nobody_ever_had_is_deleted_at_once(rig: ControlRig) -> None:
    server = an_inference_server()
    server.spec.backend_type = v2.BACKEND_TYPE_DYNAMO
    await rig.store.create(server)
    assert await rig.settle_server() == After(60.0)

    await delete(rig)

    assert left(rig) == []


async def test_another_backend_type_is_refused_while_replicas_are_there(
    serving: ControlRig,
) -> None:
    other = await with_a_second_backend(serving)
    await use_backend(serving, v2.BACKEND_TYPE_LLM_D)

    refused = await serving.server()
    assert (refused.status.state, refused.status.conditions[0].reason) == (
        FAILED,
        "BackendTypeChanged",
    )
    assert [row.state for row in refused.status.cluster_statuses] == [SERVING, SERVING]
    assert other.groups == {}
    await use_backend(serving, v2.BACKEND_TYPE_TRITON)
    assert (await serving.server()).status.state == SERVING


async def test_another_backend_type_is_taken_after_a_decommission(serving: ControlRig) -> None:
    other = await with_a_second_backend(serving)
    await decommission(serving)
    server = await serving.server()
    server.spec.decom_spec.decommission = False
    server.spec.backend_type = v2.BACKEND_TYPE_LLM_D
    await serving.store.update(server)

    await serving.run_server(rounds=8)

    again = await serving.server()
    assert again.status.state == SERVING
    assert again.metadata.annotations[MADE_BY] == "BACKEND_TYPE_LLM_D"
    assert serving.world.groups == {}
    assert len(other.groups) == 2


async def test_a_deletion_after_a_refused_type_removes_what_was_made(serving: ControlRig) -> None:
    await use_backend(serving, v2.BACKEND_TYPE_DYNAMO)

    await delete(serving)

    assert left(serving) == []
