"""InferenceServers, pass by pass: made, changed, decommissioned, deleted, made again."""

from collections.abc import Awaitable, Callable

import pytest

from maserve.base.errors import Unavailable
from maserve.base.keys import ClusterId, Key
from maserve.conditions import TRUE
from maserve.deployment.keys import current
from maserve.inferenceserver import FINALIZER, KNOWN_CLUSTERS
from maserve.modelconfig import Phase
from maserve.runtime import After, Again, Done
from maserve.testing.builders import SERVER, a_deployment, a_model, a_target, an_inference_server
from maserve.testing.control_rig import ControlRig
from maserve.wire import v2

SERVING = v2.INFERENCE_SERVER_STATE_SERVING
CREATING = v2.INFERENCE_SERVER_STATE_CREATING
C1, C2 = ClusterId("c1"), ClusterId("c2")

Story = Callable[[ControlRig], Awaitable[None]]


@pytest.fixture
async def made(rig: ControlRig) -> ControlRig:
    """Have a server that is wanted in two clusters."""
    await rig.store.create(an_inference_server(clusters=["c1", "c2"], replicas=2))
    return rig


@pytest.fixture
async def serving(made: ControlRig) -> ControlRig:
    await made.run_server(rounds=8)
    return made


async def expect_nothing_left(rig: ControlRig) -> None:
    assert rig.world.groups == {}
    assert rig.publisher.published == {}
    assert rig.model_config.find_entries(SERVER, C1) is None
    assert rig.model_config.find_entries(SERVER, C2) is None
    assert rig.routes._routes == {}


async def test_nothing_is_made_before_the_object_remembers_it(made: ControlRig) -> None:
    assert await made.servers.reconcile(SERVER) == Again()

    server = await made.server()
    assert list(server.metadata.finalizers) == [FINALIZER]
    assert server.metadata.annotations[KNOWN_CLUSTERS] == '[{"clusterId":"c1"},{"clusterId":"c2"}]'
    assert made.writes == []


async def test_a_server_comes_up_cluster_by_cluster(made: ControlRig) -> None:
    await made.settle_server()
    assert [str(cluster) for _, cluster in made.world.groups] == ["c1"]

    await made.run_server(rounds=8)

    server = await made.server()
    assert server.status.state == SERVING
    assert server.status.observed_generation == server.metadata.generation
    assert [(c.type, c.status) for c in server.status.conditions] == [
        ("Validation", TRUE),
        ("BackendProvision", TRUE),
        ("EndpointPublish", TRUE),
        ("DiscoveryRouteProvision", TRUE),
        ("TrafficRouteProvision", TRUE),
        ("ModelConfigProvision", TRUE),
        ("HealthCheck", TRUE),
    ]
    assert [(row.cluster_id, row.state) for row in server.status.cluster_statuses] == [
        ("c1", SERVING),
        ("c2", SERVING),
    ]
    assert made.recorder.reasons[-1] == "CreationCompleted"


async def test_a_server_at_rest_writes_nothing(serving: ControlRig) -> None:
    before, writes = await serving.server(), list(serving.writes)

    await serving.run_server(rounds=10)

    assert await serving.servers.reconcile(SERVER) == After(600.0)
    assert (await serving.server(), serving.writes) == (before, writes)


async def test_a_broken_spec_is_told_and_not_retried_in_a_loop(rig: ControlRig) -> None:
    await rig.store.create(an_inference_server(clusters=[]))

    assert await rig.settle_server() == After(60.0)

    server = await rig.server()
    assert server.status.state == v2.INFERENCE_SERVER_STATE_FAILED
    assert server.status.conditions[0].reason == "NoClusterTargets"
    assert rig.recorder.reasons == ["CreationFailed"]


async def test_a_broken_spec_that_is_mended_goes_on(rig: ControlRig) -> None:
    await rig.store.create(an_inference_server(clusters=[]))
    await rig.settle_server()
    server = await rig.server()
    server.spec.cluster_targets.append(a_target("c1"))
    await rig.store.update(server)

    await rig.run_server(rounds=8)

    assert (await rig.server()).status.state == SERVING


async def test_scaling_is_applied_while_it_serves(serving: ControlRig) -> None:
    server = await serving.server()
    server.spec.init_spec.num_instances = 3
    await serving.store.update(server)

    await serving.run_server(rounds=8)

    assert len(serving.world.statuses(SERVER, C1)) == 3
    assert len(serving.world.statuses(SERVER, C2)) == 3
    assert (await serving.server()).status.state == SERVING


async def test_a_change_of_template_replaces_the_replicas_cluster_by_cluster(
    serving: ControlRig,
) -> None:
    old = {row.name for row in serving.world.statuses(SERVER, C1)}
    server = await serving.server()
    server.spec.init_spec.resource_spec.cpu = 4
    await serving.store.update(server)
    await serving.settle_server()
    assert [len(serving.world.statuses(SERVER, each)) for each in (C1, C2)] == [3, 2]

    await serving.run_server(rounds=20)

    new = {row.name for row in serving.world.statuses(SERVER, C1)}
    assert len(new) == len(old) == 2
    assert new != old
    assert (await serving.server()).status.state == SERVING


async def test_a_replica_that_dies_is_told_and_gets_well_again(serving: ControlRig) -> None:
    serving.world.kill(SERVER, C1, 0)
    await serving.settle_server()
    ill = await serving.server()
    assert (ill.status.state, ill.status.cluster_statuses[0].state) == (CREATING, CREATING)

    await serving.run_server(rounds=3)

    assert (await serving.server()).status.state == SERVING


async def test_an_unreachable_cluster_keeps_its_last_state(serving: ControlRig) -> None:
    serving.backend.fail_reads = Unavailable("cluster away")
    await serving.settle_server()

    away = await serving.server()

    assert [row.state for row in away.status.cluster_statuses] == [SERVING, SERVING]
    assert [row.message for row in away.status.cluster_statuses] == ["cluster away"] * 2
    assert away.status.state == CREATING


async def test_a_removed_cluster_is_left_clean(serving: ControlRig) -> None:
    server = await serving.server()
    del server.spec.cluster_targets[1]
    await serving.store.update(server)

    await serving.run_server(rounds=8)

    left = await serving.server()
    assert [str(cluster) for _, cluster in serving.world.groups] == ["c1"]
    assert list(serving.publisher.published[SERVER]) == ["c1"]
    assert serving.model_config.find_entries(SERVER, C2) is None
    assert left.metadata.annotations[KNOWN_CLUSTERS] == '[{"clusterId":"c1"}]'
    assert [row.cluster_id for row in left.status.cluster_statuses] == ["c1"]
    assert left.status.state == SERVING


async def test_a_cluster_removed_together_with_its_record_is_left_clean(
    serving: ControlRig,
) -> None:
    server = await serving.server()
    del server.spec.cluster_targets[1]
    server.metadata.annotations.clear()
    await serving.store.update(server)

    await serving.run_server(rounds=8)

    left = await serving.server()
    assert [str(cluster) for _, cluster in serving.world.groups] == ["c1"]
    assert serving.model_config.find_entries(SERVER, C2) is None
    assert left.metadata.annotations[KNOWN_CLUSTERS] == '[{"clusterId":"c1"}]'
    assert [row.cluster_id for row in left.status.cluster_statuses] == ["c1"]
    assert left.status.state == SERVING


async def test_an_added_cluster_is_brought_up(serving: ControlRig) -> None:
    server = await serving.server()
    server.spec.cluster_targets.append(a_target("c3"))
    await serving.store.update(server)

    await serving.run_server(rounds=8)

    assert [row.cluster_id for row in (await serving.server()).status.cluster_statuses] == [
        "c1",
        "c2",
        "c3",
    ]
    assert len(serving.world.statuses(SERVER, ClusterId("c3"))) == 2


async def unseen(_rig: ControlRig) -> None:
    return


async def just_seen(rig: ControlRig) -> None:
    await rig.servers.reconcile(SERVER)


async def half_made(rig: ControlRig) -> None:
    await rig.settle_server()


async def complete(rig: ControlRig) -> None:
    await rig.run_server(rounds=8)


async def leaving_a_cluster(rig: ControlRig) -> None:
    await complete(rig)
    server = await rig.server()
    del server.spec.cluster_targets[1]
    await rig.store.update(server)
    await rig.servers.reconcile(SERVER)


@pytest.mark.parametrize("story", [unseen, just_seen, half_made, complete, leaving_a_cluster])
async def test_a_deletion_leaves_nothing_in_whatever_state(made: ControlRig, story: Story) -> None:
    await story(made)
    await made.store.delete(v2.InferenceServer, SERVER)

    await made.run_server(rounds=8)

    assert await made.store.find(v2.InferenceServer, SERVER) is None
    await expect_nothing_left(made)


async def test_a_deletion_waits_for_a_cluster_that_is_away(serving: ControlRig) -> None:
    await serving.store.delete(v2.InferenceServer, SERVER)
    serving.backend.fail_writes = Unavailable("cluster away")
    await serving.run_server(rounds=3)

    held = await serving.server()
    assert held.status.state == v2.INFERENCE_SERVER_STATE_DELETING
    assert "the finalizer holds until the cluster answers" in held.status.conditions[1].message
    serving.backend.fail_writes = None
    await serving.run_server(rounds=8)
    await expect_nothing_left(serving)


async def test_a_decommissioned_server_stays_as_an_object_only(serving: ControlRig) -> None:
    server = await serving.server()
    server.spec.decom_spec.decommission = True
    await serving.store.update(server)

    await serving.run_server(rounds=8)

    status = (await serving.server()).status
    assert status.state == v2.INFERENCE_SERVER_STATE_DELETED
    assert [row.state for row in status.cluster_statuses] == [v2.INFERENCE_SERVER_STATE_DELETED] * 2
    await expect_nothing_left(serving)


async def test_a_server_made_again_at_once_is_a_new_one(serving: ControlRig) -> None:
    first = await serving.server()
    await serving.store.delete(v2.InferenceServer, SERVER)
    await serving.run_server(rounds=8)
    await serving.store.create(an_inference_server(clusters=["c1"]))

    await serving.run_server(rounds=8)

    second = await serving.server()
    assert second.metadata.uid != first.metadata.uid
    assert second.status.state == SERVING


async def test_a_lost_status_changes_nothing_in_the_world(serving: ControlRig) -> None:
    server = await serving.server()
    server.status.Clear()
    await serving.store.update_status(server)
    writes = list(serving.writes)

    await serving.run_server(rounds=3)

    assert (await serving.server()).status.state == SERVING
    assert serving.writes == writes


async def test_details_that_cannot_be_had_do_not_end_the_pass(serving: ControlRig) -> None:
    serving.backend.fail_next(Unavailable("cluster away"))

    await serving.run_server(rounds=2)

    assert (await serving.server()).status.state == SERVING


async def test_a_server_that_is_not_there_is_done(rig: ControlRig) -> None:
    assert await rig.servers.reconcile(Key("ns", "nobody")) == Done()


async def test_a_server_held_by_somebody_elses_finalizer_is_left_alone(
    serving: ControlRig,
) -> None:
    server = await serving.server()
    server.metadata.finalizers.append("somebody/else")
    await serving.store.update(server)
    await serving.store.delete(v2.InferenceServer, SERVER)
    await serving.run_server(rounds=8)
    before = await serving.server()

    assert await serving.servers.reconcile(SERVER) == Done()
    assert await serving.server() == before


async def both(rig: ControlRig, rounds: int = 20) -> None:
    for _ in range(rounds):
        await rig.settle_server()
        await rig.settle_deployment()
        rig.advance(1.0)


async def test_server_and_deployment_applied_together_end_live_everywhere(
    made: ControlRig,
) -> None:
    await made.store.create(a_model("m1"))
    await made.store.create(a_deployment(desired="m1"))

    await both(made)

    assert current(await made.deployment()) == "m1"
    assert made.entries("c1") == made.entries("c2") == {"m1": Phase.SERVING}


async def test_a_removed_cluster_does_not_disturb_the_deployment(made: ControlRig) -> None:
    await made.store.create(a_model("m1"))
    await made.store.create(a_deployment(desired="m1"))
    await both(made)
    server = await made.server()
    del server.spec.cluster_targets[1]
    await made.store.update(server)

    await both(made)

    deployment = await made.deployment()
    assert deployment.status.stage == v2.DEPLOYMENT_STAGE_ROLLOUT_COMPLETE
    assert deployment.status.state == v2.DEPLOYMENT_STATE_HEALTHY
    assert made.entries("c1") == {"m1": Phase.SERVING}
