"""The creation actors besides Validation (behaviour 3.3)."""

from dataclasses import replace

import pytest

from maserve.backends import ServerState, ServerStatus
from maserve.base.errors import Denied, Unavailable, Unsupported
from maserve.base.keys import ClusterId
from maserve.conditions import FALSE, TRUE, UNKNOWN
from maserve.inferenceserver.clusters import known_targets, remember_targets
from maserve.inferenceserver.maker import is_maker_remembered, remember_maker
from maserve.inferenceserver.stock.creation import traffic_route_provision
from maserve.inferenceserver.stock.creation.backend_provision import BackendProvision
from maserve.inferenceserver.stock.creation.discovery_route_provision import (
    DiscoveryRouteProvision,
)
from maserve.inferenceserver.stock.creation.endpoint_publish import EndpointPublish
from maserve.inferenceserver.stock.creation.health_check import HealthCheck
from maserve.inferenceserver.stock.creation.model_config_provision import ModelConfigProvision
from maserve.inferenceserver.stock.creation.traffic_route_provision import TrafficRouteProvision
from maserve.inferenceserver.stock.teardown import discovery_route, traffic_route
from maserve.resource.metadata import key_of
from maserve.testing.backend_fake import FakeBackend
from maserve.testing.builders import SERVER, a_target, an_inference_server
from maserve.testing.control_rig import ControlRig
from maserve.testing.expect import act, expect_condition, look
from maserve.wire import v2

C1, C2 = ClusterId("c1"), ClusterId("c2")
AWAY = Unavailable("cluster away")


@pytest.fixture
def server() -> v2.InferenceServer:
    """Have a server of which nothing is made yet and all is on record."""
    made = an_inference_server(clusters=["c1", "c2"], replicas=2)
    remember_maker(made)
    return made


async def test_nothing_is_made_before_the_backend_is_on_record(rig: ControlRig) -> None:
    fresh = an_inference_server(clusters=["c1"])
    actor = BackendProvision(rig.server_ports)

    expect_condition(await act(actor, fresh), UNKNOWN, "RollingInProgress", says="c1")
    assert rig.writes == []
    assert is_maker_remembered(fresh)
    await act(actor, fresh)
    assert [call[0] for call in rig.writes] == ["create_server"]


async def test_a_record_that_was_lost_is_made_again_and_nothing_else(rig: ControlRig) -> None:
    server = await rig.provide(clusters=["c1"])
    server.metadata.annotations.clear()
    before = list(rig.writes)

    expect_condition(await act(BackendProvision(rig.server_ports), server), TRUE)
    assert is_maker_remembered(server)
    assert rig.writes == before


async def test_clusters_are_provisioned_one_after_the_other(
    rig: ControlRig, server: v2.InferenceServer
) -> None:
    actor = BackendProvision(rig.server_ports)
    await rig.model_config.create_model_config(SERVER, a_target("c1"), labels={}, annotations={})
    await rig.model_config.create_model_config(SERVER, a_target("c2"), labels={}, annotations={})

    expect_condition(
        await act(actor, server),
        UNKNOWN,
        "RollingInProgress",
        says="provisioning cluster c1: 0/2 replicas ready",
    )
    assert rig.world.statuses(SERVER, C2) == ()
    rig.advance(rig.world.start_s)
    expect_condition(await act(actor, server), UNKNOWN, "RollingInProgress", says="cluster c2")
    rig.advance(rig.world.start_s)

    expect_condition(await act(actor, server), TRUE)


async def test_a_change_of_template_is_rolled_out(rig: ControlRig) -> None:
    server = await rig.provide(clusters=["c1"])
    actor = BackendProvision(rig.server_ports)
    expect_condition(await act(actor, server), TRUE)
    server.spec.init_spec.resource_spec.cpu = 4

    expect_condition(await act(actor, server), UNKNOWN, "RollingInProgress", says="cluster c1")


async def test_scaling_is_applied(rig: ControlRig) -> None:
    server = await rig.provide(clusters=["c1"], replicas=2)
    actor = BackendProvision(rig.server_ports)
    server.spec.init_spec.num_instances = 3

    await act(actor, server)
    rig.advance(rig.world.start_s)

    expect_condition(await act(actor, server), TRUE)
    assert len(rig.world.statuses(SERVER, C1)) == 3


class FailedBackend(FakeBackend):
    """Reports every cluster as failed."""

    async def get_server_status(
        self, server: v2.InferenceServer, target: v2.ClusterTarget
    ) -> ServerStatus:
        return ServerStatus(state=ServerState.FAILED, message="no more restarts")


async def test_a_failed_cluster_goes_on_being_tried(
    rig: ControlRig, server: v2.InferenceServer
) -> None:
    rig.backends._backends[v2.BACKEND_TYPE_TRITON] = FailedBackend(rig.world)

    expect_condition(
        await look(BackendProvision(rig.server_ports), server),
        UNKNOWN,
        "BackendProvisioningFailed",
        says="cluster c1: no more restarts",
    )


@pytest.mark.parametrize(
    ("attribute", "reason"),
    [
        pytest.param("fail_reads", "StatusCheckFailed", id="read"),
        pytest.param("fail_writes", "ProvisionFailed", id="write"),
    ],
)
async def test_an_unreachable_cluster_is_retried(
    rig: ControlRig, server: v2.InferenceServer, attribute: str, reason: str
) -> None:
    setattr(rig.backend, attribute, AWAY)
    actor = BackendProvision(rig.server_ports)
    seen = {"fail_reads": look, "fail_writes": act}[attribute]

    expect_condition(await seen(actor, server), UNKNOWN, reason, says="cluster away")


async def test_a_cluster_that_refuses_us_fails(rig: ControlRig, server: v2.InferenceServer) -> None:
    rig.backend.fail_writes = Denied("may not create deployments")

    expect_condition(
        await act(BackendProvision(rig.server_ports), server),
        FALSE,
        "ProvisionFailed",
        says="may not create deployments",
    )


@pytest.mark.parametrize("kind", [BackendProvision, HealthCheck])
async def test_a_backend_nobody_has_is_not_asked(
    rig: ControlRig, server: v2.InferenceServer, kind: type[BackendProvision] | type[HealthCheck]
) -> None:
    server.spec.backend_type = v2.BACKEND_TYPE_DYNAMO

    expect_condition(await look(kind(rig.server_ports), server), UNKNOWN, "BackendNotFound")


async def a_removed_cluster(rig: ControlRig) -> v2.InferenceServer:
    """Have a server in c1 and c2 whose spec no longer names c2."""
    server = await rig.provide(clusters=["c1", "c2"])
    remember_targets(server)
    await act(EndpointPublish(rig.server_ports), server)
    del server.spec.cluster_targets[1]
    return server


async def test_a_removed_cluster_keeps_its_replicas_while_it_is_published(rig: ControlRig) -> None:
    server = await a_removed_cluster(rig)

    expect_condition(await act(BackendProvision(rig.server_ports), server), TRUE)
    assert len(rig.world.statuses(SERVER, C2)) == 2
    expect_condition(
        await look(EndpointPublish(rig.server_ports), server),
        UNKNOWN,
        "OrphanEndpointSlice",
        says="c2",
    )


async def test_a_removed_cluster_is_cleaned_once_traffic_has_left(rig: ControlRig) -> None:
    server = await a_removed_cluster(rig)
    await act(EndpointPublish(rig.server_ports), server)
    actor = BackendProvision(rig.server_ports)

    expect_condition(await act(actor, server), UNKNOWN, "ClusterRemoving", says="removing from c2")
    assert "DRAINING" in {row.state for row in rig.world.statuses(SERVER, C2)}
    assert await rig.routes.exists(a_target("c2"), traffic_route(SERVER, a_target("c2")))
    rig.advance(rig.world.drain_s)
    await act(actor, server)
    rig.advance(rig.world.drain_s)
    await act(actor, server)

    expect_condition(await act(actor, server), TRUE)
    assert [target.cluster_id for target in known_targets(server)] == ["c1"]
    assert rig.model_config.find_entries(SERVER, C2) is None
    assert not await rig.routes.exists(a_target("c2"), traffic_route(SERVER, a_target("c2")))


async def test_a_removed_cluster_without_traffic_goes_while_another_is_ill(
    rig: ControlRig,
) -> None:
    server = await a_removed_cluster(rig)
    await act(EndpointPublish(rig.server_ports), server)
    rig.world.kill(SERVER, C1, 0)

    expect_condition(
        await act(BackendProvision(rig.server_ports), server),
        UNKNOWN,
        "RollingInProgress",
        says="provisioning cluster c1: 1/2 replicas ready; still to be removed: c2",
    )
    assert "DRAINING" in {row.state for row in rig.world.statuses(SERVER, C2)}


async def test_a_publisher_that_does_not_answer_delays_the_removal(rig: ControlRig) -> None:
    server = await a_removed_cluster(rig)
    rig.publisher.fail_reads = AWAY

    expect_condition(
        await look(BackendProvision(rig.server_ports), server), UNKNOWN, "StatusCheckFailed"
    )


async def test_every_cluster_is_published(rig: ControlRig, server: v2.InferenceServer) -> None:
    actor = EndpointPublish(rig.server_ports)

    expect_condition(
        await look(actor, server),
        UNKNOWN,
        "EndpointSliceMissing",
        says="clusters not published: c1, c2",
    )
    expect_condition(await act(actor, server), TRUE)
    expect_condition(await look(actor, server), TRUE)
    assert rig.publisher.calls == [("sync", "ns/is", "c1", "c2")]


async def test_one_unresolvable_cluster_does_not_stop_the_others(
    rig: ControlRig, server: v2.InferenceServer
) -> None:
    rig.provider.unreachable.add("c1")

    expect_condition(
        await act(EndpointPublish(rig.server_ports), server),
        UNKNOWN,
        "PartialEndpointPublish",
        says="not resolved: c1: cluster c1 cannot be reached",
    )
    assert list(rig.publisher.published[SERVER]) == ["c2"]


async def test_a_sync_happens_even_when_nothing_was_resolved(
    rig: ControlRig, server: v2.InferenceServer
) -> None:
    rig.provider.unreachable.update(("c1", "c2"))

    await act(EndpointPublish(rig.server_ports), server)

    assert rig.publisher.calls == [("sync", "ns/is")]


async def test_a_publisher_that_cannot_be_read_is_retried(
    rig: ControlRig, server: v2.InferenceServer
) -> None:
    rig.publisher.fail_reads = AWAY

    expect_condition(await look(EndpointPublish(rig.server_ports), server), UNKNOWN, "GetFailed")


@pytest.mark.parametrize(
    ("error", "status"),
    [
        pytest.param(AWAY, UNKNOWN, id="away-is-retried"),
        pytest.param(Unsupported("no such service"), FALSE, id="anything-else-fails"),
    ],
)
async def test_a_failed_sync(
    rig: ControlRig, server: v2.InferenceServer, error: Unavailable | Unsupported, status: int
) -> None:
    rig.publisher.fail_writes = error

    condition = await act(EndpointPublish(rig.server_ports), server)

    assert (condition.status, condition.reason) == (status, "SyncFailed")


async def test_the_discovery_route_is_made_with_its_default_rule(
    rig: ControlRig, server: v2.InferenceServer
) -> None:
    actor = DiscoveryRouteProvision(rig.server_ports)

    expect_condition(await look(actor, server), UNKNOWN, "DiscoveryRouteMissing")
    expect_condition(await act(actor, server), TRUE)
    expect_condition(await look(actor, server), TRUE)


async def test_traffic_routes_are_made_in_every_cluster(
    rig: ControlRig, server: v2.InferenceServer
) -> None:
    actor = TrafficRouteProvision(rig.server_ports)

    expect_condition(
        await look(actor, server), UNKNOWN, "TrafficRouteMissing", says="not served yet in: c1, c2"
    )
    expect_condition(await act(actor, server), TRUE)
    expect_condition(await look(actor, server), TRUE)
    assert await rig.routes.exists(a_target("c2"), traffic_route(key_of(server), a_target("c2")))


@pytest.mark.parametrize("kind", [DiscoveryRouteProvision, TrafficRouteProvision])
@pytest.mark.parametrize(
    ("attribute", "reason"),
    [
        pytest.param("fail_reads", "GetFailed", id="read"),
        pytest.param("fail_writes", "EnsureFailed", id="write"),
    ],
)
async def test_routes_that_cannot_be_reached_are_retried(
    rig: ControlRig,
    server: v2.InferenceServer,
    kind: type[DiscoveryRouteProvision] | type[TrafficRouteProvision],
    attribute: str,
    reason: str,
) -> None:
    setattr(rig.routes, attribute, AWAY)
    seen = {"fail_reads": look, "fail_writes": act}[attribute]

    expect_condition(
        await seen(kind(rig.server_ports), server), UNKNOWN, reason, says="cluster away"
    )


async def test_one_clusters_failure_does_not_stop_the_others_routes(
    rig: ControlRig, server: v2.InferenceServer
) -> None:
    actor = TrafficRouteProvision(rig.server_ports)
    previous = await look(actor, server)
    rig.routes.fail_next(AWAY)

    expect_condition(
        await actor.run(server, previous), UNKNOWN, "EnsureFailed", says="c1: cluster away"
    )
    assert await rig.routes.exists(a_target("c2"), traffic_route(SERVER, a_target("c2")))


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (DiscoveryRouteProvision, "DiscoveryRouteMissing"),
        (TrafficRouteProvision, "TrafficRouteMissing"),
    ],
)
async def test_a_route_counts_once_it_was_acknowledged(
    rig: ControlRig,
    server: v2.InferenceServer,
    kind: type[DiscoveryRouteProvision] | type[TrafficRouteProvision],
    reason: str,
) -> None:
    actor = kind(rig.server_ports)
    rig.routes.hold()
    expect_condition(await act(actor, server), UNKNOWN, reason, says="not served yet")
    expect_condition(await look(actor, server), UNKNOWN, reason, says="not served yet")
    rig.routes.acknowledge()

    expect_condition(await act(actor, server), TRUE)


@pytest.mark.parametrize("kind", [DiscoveryRouteProvision, TrafficRouteProvision])
async def test_a_route_that_is_just_being_changed_still_counts(
    rig: ControlRig, kind: type[DiscoveryRouteProvision] | type[TrafficRouteProvision]
) -> None:
    server, actor = await rig.provide(clusters=["c1"]), kind(rig.server_ports)
    served = await look(actor, server)
    expect_condition(served, TRUE)
    rig.routes.hold()
    rule = replace(traffic_route_provision.default_rule(server), match_path="/another")
    target = a_target("c1")
    await rig.routes.add_rules(None, discovery_route(SERVER), rule)
    await rig.routes.add_rules(target, traffic_route(SERVER, target), rule)

    expect_condition(await actor.retrieve(server, served), TRUE)


async def test_model_configs_are_made_one_cluster_at_a_time(
    rig: ControlRig, server: v2.InferenceServer
) -> None:
    actor = ModelConfigProvision(rig.server_ports)

    expect_condition(await look(actor, server), UNKNOWN, "ModelConfigNotFound", says="c1")
    expect_condition(
        await act(actor, server), UNKNOWN, "RollingInProgress", says="provisioning cluster c2"
    )
    expect_condition(await act(actor, server), TRUE)
    assert rig.model_config.find_entries(SERVER, C2) == ()


async def test_a_model_config_that_is_there_keeps_its_entries(rig: ControlRig) -> None:
    server = await rig.provide(clusters=["c1"])
    await rig.list_model("m1")

    expect_condition(await act(ModelConfigProvision(rig.server_ports), server), TRUE)
    assert list(rig.entries()) == ["m1"]


@pytest.mark.parametrize(
    ("attribute", "reason"),
    [
        pytest.param("fail_reads", "StatusCheckFailed", id="read"),
        pytest.param("fail_writes", "ProvisionFailed", id="write"),
    ],
)
async def test_a_model_config_that_cannot_be_reached_is_retried(
    rig: ControlRig, server: v2.InferenceServer, attribute: str, reason: str
) -> None:
    setattr(rig.model_config, attribute, AWAY)
    seen = {"fail_reads": look, "fail_writes": act}[attribute]

    expect_condition(await seen(ModelConfigProvision(rig.server_ports), server), UNKNOWN, reason)


async def test_health_names_the_ill_clusters_and_does_nothing(rig: ControlRig) -> None:
    server = await rig.provide(clusters=["c1", "c2"])
    actor = HealthCheck(rig.server_ports)
    expect_condition(await act(actor, server), TRUE)
    rig.world.kill(SERVER, C2, 0)
    before = list(rig.writes)

    expect_condition(
        await act(actor, server),
        UNKNOWN,
        "HealthCheckFailed",
        says="not every replica is ready in: c2",
    )
    assert rig.writes == before


async def test_a_server_is_not_finished_while_a_removed_cluster_is_left(rig: ControlRig) -> None:
    server = await a_removed_cluster(rig)

    expect_condition(
        await look(HealthCheck(rig.server_ports), server),
        UNKNOWN,
        "ClusterRemoving",
        says="still to be removed: c2",
    )


async def test_health_that_cannot_be_told_is_retried(
    rig: ControlRig, server: v2.InferenceServer
) -> None:
    rig.backend.fail_reads = AWAY

    expect_condition(
        await look(HealthCheck(rig.server_ports), server), UNKNOWN, "HealthCheckFailed", "away"
    )


@pytest.mark.parametrize(
    "kind",
    [
        BackendProvision,
        EndpointPublish,
        DiscoveryRouteProvision,
        TrafficRouteProvision,
        ModelConfigProvision,
        HealthCheck,
    ],
)
async def test_no_retrieve_writes(
    rig: ControlRig, server: v2.InferenceServer, kind: type[BackendProvision]
) -> None:
    await look(kind(rig.server_ports), server)

    assert rig.writes == rig.provider.calls == []
