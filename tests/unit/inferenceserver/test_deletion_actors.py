"""The deletion actors: routes first, then replicas, configs and files (behaviour 3.4)."""

import pytest

from maserve.base.errors import Unavailable
from maserve.base.keys import ClusterId
from maserve.base.signals import Signal
from maserve.conditions import TRUE, UNKNOWN
from maserve.endpoints import Endpoint
from maserve.inferenceserver.clusters import (
    KNOWN_CLUSTERS,
    forget_target,
    known_targets,
    remember_targets,
    removed_targets,
)
from maserve.inferenceserver.maker import find_maker
from maserve.inferenceserver.stock.deletion.cleanup import Cleanup
from maserve.inferenceserver.stock.deletion.route_cleanup import RouteCleanup
from maserve.inferenceserver.stock.teardown import discovery_route, traffic_route
from maserve.routing import RouteConfig
from maserve.testing.backend_fake import FakeBackend
from maserve.testing.builders import SERVER, a_target, an_inference_server
from maserve.testing.control_rig import ControlRig
from maserve.testing.expect import act, expect_condition, look
from maserve.testing.world import FakeWorld
from maserve.wire import v2

C1, C2 = ClusterId("c1"), ClusterId("c2")
AWAY = Unavailable("cluster away")


@pytest.fixture
async def server(rig: ControlRig) -> v2.InferenceServer:
    return await rig.provide(clusters=["c1", "c2"])


async def test_every_route_is_removed(rig: ControlRig, server: v2.InferenceServer) -> None:
    actor = RouteCleanup(rig.server_ports)

    expect_condition(await look(actor, server), UNKNOWN, "DiscoveryRouteStillExists")
    expect_condition(await act(actor, server), TRUE)
    expect_condition(await look(actor, server), TRUE)
    assert not await rig.routes.exists(None, discovery_route(SERVER))
    assert not await rig.routes.exists(a_target("c2"), traffic_route(SERVER, a_target("c2")))


async def test_what_was_published_is_removed(rig: ControlRig, server: v2.InferenceServer) -> None:
    rig.publisher.published[SERVER] = {}

    await act(RouteCleanup(rig.server_ports), server)

    assert rig.publisher.published == {}


async def test_a_traffic_route_that_is_left_is_named(
    rig: ControlRig, server: v2.InferenceServer
) -> None:
    actor = RouteCleanup(rig.server_ports)
    before = await act(actor, server)
    target = a_target("c2")
    await rig.routes.create(target, traffic_route(SERVER, target), RouteConfig())

    expect_condition(
        await actor.retrieve(server, before),
        UNKNOWN,
        "TrafficRouteStillExists",
        says="traffic routes are still there in: c2",
    )


async def test_a_service_without_clusters_is_deleted_too(
    rig: ControlRig, server: v2.InferenceServer
) -> None:
    """To `Publisher.get` it looks like none at all."""
    rig.publisher.published[SERVER] = {}
    await rig.routes.delete(None, discovery_route(SERVER))
    actor = RouteCleanup(rig.server_ports)

    expect_condition(await look(actor, server), UNKNOWN, "EndpointsStillPublished")
    expect_condition(await act(actor, server), TRUE)
    assert rig.publisher.published == {}


async def test_clusters_that_are_published_again_are_seen(
    rig: ControlRig, server: v2.InferenceServer
) -> None:
    actor = RouteCleanup(rig.server_ports)
    before = await act(actor, server)
    rig.publisher.published[SERVER] = {C1: Endpoint(host="127.0.0.1", port=1)}

    expect_condition(
        await actor.retrieve(server, before), UNKNOWN, "EndpointsStillPublished", says="c1"
    )


async def test_a_route_that_the_data_plane_still_serves_is_still_there(
    rig: ControlRig, server: v2.InferenceServer
) -> None:
    actor = RouteCleanup(rig.server_ports)
    rig.routes.hold()

    expect_condition(await act(actor, server), UNKNOWN, "DiscoveryRouteStillExists")
    rig.routes.acknowledge()
    expect_condition(await act(actor, server), TRUE)


async def test_a_cluster_whose_route_cannot_be_removed_does_not_keep_the_others(
    rig: ControlRig, server: v2.InferenceServer
) -> None:
    actor = RouteCleanup(rig.server_ports)
    previous = await look(actor, server)
    rig.publisher.fail_next(AWAY)

    expect_condition(
        await actor.run(server, previous), UNKNOWN, "DeleteFailed", says="cluster away"
    )
    assert not await rig.routes.exists(a_target("c2"), traffic_route(SERVER, a_target("c2")))


@pytest.mark.parametrize(
    ("attribute", "reason"),
    [
        pytest.param("fail_reads", "GetFailed", id="read"),
        pytest.param("fail_writes", "DeleteFailed", id="write"),
    ],
)
async def test_routes_that_cannot_be_reached_are_retried(
    rig: ControlRig, server: v2.InferenceServer, attribute: str, reason: str
) -> None:
    setattr(rig.routes, attribute, AWAY)
    seen = {"fail_reads": look, "fail_writes": act}[attribute]

    expect_condition(await seen(RouteCleanup(rig.server_ports), server), UNKNOWN, reason)


async def test_replicas_drain_before_configs_go(
    rig: ControlRig, server: v2.InferenceServer
) -> None:
    actor = Cleanup(rig.server_ports)

    expect_condition(
        await act(actor, server),
        UNKNOWN,
        "CleanupInProgress",
        says="replicas are draining in: c1, c2",
    )
    assert rig.model_config.find_entries(SERVER, C1) == ()
    expect_condition(await look(actor, server), UNKNOWN, "CleanupInProgress")
    rig.advance(rig.world.drain_s)
    expect_condition(await act(actor, server), TRUE)

    assert rig.world.groups == {}
    assert rig.model_config.find_entries(SERVER, C1) is None
    expect_condition(await look(actor, server), TRUE)


async def test_a_config_without_replicas_still_counts_as_left(
    rig: ControlRig, server: v2.InferenceServer
) -> None:
    rig.world.remove(SERVER, C1)
    rig.world.remove(SERVER, C2)
    rig.advance(rig.world.drain_s)
    rig.world.remove(SERVER, C1)
    rig.world.remove(SERVER, C2)

    expect_condition(
        await look(Cleanup(rig.server_ports), server), UNKNOWN, "CleanupInProgress", says="c1, c2"
    )
    expect_condition(await act(Cleanup(rig.server_ports), server), TRUE)


async def test_an_unreachable_cluster_does_not_stop_the_others(
    rig: ControlRig, server: v2.InferenceServer
) -> None:
    actor = Cleanup(rig.server_ports)
    previous = await look(actor, server)
    rig.backend.fail_next(AWAY)

    expect_condition(
        await actor.run(server, previous),
        UNKNOWN,
        "ServerCleanupFailed",
        says="c1: cluster away; the finalizer holds until the cluster answers",
    )
    assert "DRAINING" in {row.state for row in rig.world.statuses(SERVER, C2)}


async def test_a_cluster_that_cannot_be_asked_is_retried(
    rig: ControlRig, server: v2.InferenceServer
) -> None:
    rig.backend.fail_reads = AWAY

    expect_condition(
        await look(Cleanup(rig.server_ports), server), UNKNOWN, "StatusCheckFailed", "away"
    )


async def test_a_server_of_an_unknown_backend_that_never_ran_has_nothing_to_clean(
    rig: ControlRig,
) -> None:
    server = an_inference_server()
    server.spec.backend_type = v2.BACKEND_TYPE_DYNAMO

    expect_condition(await act(Cleanup(rig.server_ports), server), TRUE)


@pytest.mark.parametrize("kind", [v2.BACKEND_TYPE_DYNAMO, v2.BACKEND_TYPE_LLM_D])
async def test_a_server_whose_backend_type_was_changed_is_cleaned_by_the_one_that_made_it(
    rig: ControlRig, server: v2.InferenceServer, kind: int
) -> None:
    other = FakeBackend(FakeWorld(clock=rig.clock, changed=Signal(), read_entries=lambda *_: None))
    rig.backends._backends[v2.BACKEND_TYPE_LLM_D] = other
    server.spec.backend_type = v2.BackendType(kind)
    await act(Cleanup(rig.server_ports), server)
    rig.advance(rig.world.drain_s)

    expect_condition(await act(Cleanup(rig.server_ports), server), TRUE)
    assert rig.world.groups == {}
    assert find_maker(server) is None


@pytest.mark.parametrize("forgotten", [False, True], ids=["on record", "record lost"])
async def test_replicas_of_a_backend_that_is_not_registered_hold_the_end(
    rig: ControlRig, server: v2.InferenceServer, forgotten: bool
) -> None:
    if forgotten:
        server.metadata.annotations.clear()
    triton = rig.backends._backends.pop(v2.BACKEND_TYPE_TRITON)
    actor, before = Cleanup(rig.server_ports), list(rig.writes)

    expect_condition(
        await act(actor, server), UNKNOWN, "BackendNotFound", says="BACKEND_TYPE_TRITON may be left"
    )
    assert rig.writes == before
    rig.backends._backends[v2.BACKEND_TYPE_TRITON] = triton
    await act(actor, server)
    rig.advance(rig.world.drain_s)
    expect_condition(await act(actor, server), TRUE)
    assert rig.world.groups == {}


async def test_clusters_that_left_the_spec_are_cleaned_too(
    rig: ControlRig, server: v2.InferenceServer
) -> None:
    remember_targets(server)
    del server.spec.cluster_targets[:]

    await act(Cleanup(rig.server_ports), server)
    rig.advance(rig.world.drain_s)
    await act(Cleanup(rig.server_ports), server)

    assert rig.world.groups == {}


@pytest.mark.parametrize("kind", [Cleanup, RouteCleanup])
async def test_no_retrieve_writes(
    rig: ControlRig, server: v2.InferenceServer, kind: type[Cleanup]
) -> None:
    before = list(rig.writes)

    await look(kind(rig.server_ports), server)

    assert rig.writes == before


def ids(targets: tuple[v2.ClusterTarget, ...]) -> list[str]:
    return [target.cluster_id for target in targets]


def test_a_cluster_is_remembered_after_it_left_the_spec() -> None:
    server = an_inference_server(clusters=["c1", "c2"])
    assert remember_targets(server)
    del server.spec.cluster_targets[0]
    server.spec.cluster_targets.append(a_target("c3"))

    assert ids(known_targets(server)) == ["c2", "c3", "c1"]
    assert ids(removed_targets(server)) == ["c1"]


def test_remembering_twice_changes_nothing() -> None:
    server = an_inference_server(clusters=["c1"])
    remember_targets(server)

    assert not remember_targets(server)


def test_a_forgotten_cluster_is_not_known() -> None:
    server = an_inference_server(clusters=["c1", "c2"])
    remember_targets(server)
    del server.spec.cluster_targets[0]

    forget_target(server, C1)

    assert ids(known_targets(server)) == ["c2"]


def test_the_specs_connection_wins_over_the_remembered_one() -> None:
    server = an_inference_server(clusters=["c1"])
    server.spec.cluster_targets[0].kubernetes.host = "https://old"
    remember_targets(server)
    server.spec.cluster_targets[0].kubernetes.host = "https://new"

    assert [target.kubernetes.host for target in known_targets(server)] == ["https://new"]


@pytest.mark.parametrize("text", ["{", "7", '["c1"]'])
def test_a_damaged_memory_counts_as_empty(text: str) -> None:
    server = an_inference_server(clusters=["c1"])
    server.metadata.annotations[KNOWN_CLUSTERS] = text

    assert ids(known_targets(server)) == ["c1"]
