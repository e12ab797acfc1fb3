"""The stock InferenceServer plugin: order, state, details; and what its events say."""

import pytest

from maserve.backends import ServerState, ServerStatus
from maserve.base.errors import Denied, Unavailable
from maserve.base.keys import ClusterId
from maserve.conditions import FALSE, TRUE, UNKNOWN, find_condition
from maserve.inferenceserver.events import record_changes, record_local_meaning
from maserve.inferenceserver.stock import StockPlugin
from maserve.testing.backend_fake import FakeBackend
from maserve.testing.builders import SERVER, a_condition, an_inference_server
from maserve.testing.control_rig import ControlRig
from maserve.testing.recorder import FakeRecorder
from maserve.wire import v2

SERVING = v2.INFERENCE_SERVER_STATE_SERVING
CREATING = v2.INFERENCE_SERVER_STATE_CREATING
FAILED = v2.INFERENCE_SERVER_STATE_FAILED
DELETING = v2.INFERENCE_SERVER_STATE_DELETING
DELETED = v2.INFERENCE_SERVER_STATE_DELETED
C1 = ClusterId("c1")


@pytest.fixture
def plugin(rig: ControlRig) -> StockPlugin:
    return StockPlugin(rig.server_ports)


def test_the_actors_are_in_the_guides_order(plugin: StockPlugin) -> None:
    server = an_inference_server()

    assert [actor.type for actor in plugin.creation_plugin(server).actors] == [
        "Validation",
        "BackendProvision",
        "EndpointPublish",
        "DiscoveryRouteProvision",
        "TrafficRouteProvision",
        "ModelConfigProvision",
        "HealthCheck",
    ]
    assert [actor.type for actor in plugin.deletion_plugin(server).actors] == [
        "RouteCleanup",
        "Cleanup",
    ]


Row = tuple[int, str]


@pytest.mark.parametrize(
    ("rows", "state"),
    [
        pytest.param([], CREATING, id="no-condition"),
        pytest.param([(TRUE, ""), (TRUE, "")], SERVING, id="all-true"),
        pytest.param([(TRUE, ""), (UNKNOWN, "RollingInProgress")], CREATING, id="in-progress"),
        pytest.param([(FALSE, "NoClusterTargets"), (UNKNOWN, "")], FAILED, id="one-false"),
        pytest.param([(UNKNOWN, "BackendProvisioningFailed")], FAILED, id="backend-failed"),
        pytest.param([(UNKNOWN, "StatusCheckFailed")], CREATING, id="away"),
    ],
)
def test_the_state_is_parsed_from_the_conditions(
    plugin: StockPlugin, rows: list[Row], state: "v2.InferenceServerState"
) -> None:
    server = server_with(rows)

    assert plugin.parse_state(server) == state


def server_with(rows: list[Row]) -> v2.InferenceServer:
    server = an_inference_server()
    server.status.conditions.extend(
        a_condition(str(n), status, reason=reason)  # type: ignore[arg-type]  # a table of ints
        for n, (status, reason) in enumerate(rows)
    )
    return server


@pytest.mark.parametrize(
    ("rows", "deleted", "decommissioned", "state"),
    [
        pytest.param([(UNKNOWN, "")], True, False, DELETING, id="deleting"),
        pytest.param([(TRUE, "")], True, False, DELETING, id="deleted-until-it-is-gone"),
        pytest.param([(UNKNOWN, "")], False, True, DELETING, id="decommissioning"),
        pytest.param([(FALSE, "")], False, True, DELETING, id="decommissioning-with-trouble"),
        pytest.param([(TRUE, "")], False, True, DELETED, id="decommissioned"),
        pytest.param([], False, True, DELETING, id="decommission-not-begun"),
    ],
)
def test_the_state_at_the_end_of_a_server(
    plugin: StockPlugin,
    rows: list[Row],
    deleted: bool,
    decommissioned: bool,
    state: "v2.InferenceServerState",
) -> None:
    server = server_with(rows)
    server.metadata.finalizers.append("held")
    server.spec.decom_spec.decommission = decommissioned
    server.metadata.MergeFrom(DELETED_AT if deleted else type(DELETED_AT)())

    assert plugin.parse_state(server) == state


DELETED_AT = v2.InferenceServer().metadata
DELETED_AT.deletionTimestamp.seconds = 1


async def test_details_tell_each_clusters_state(rig: ControlRig, plugin: StockPlugin) -> None:
    server = await rig.provide(clusters=["c1", "c2"])
    rig.world.kill(SERVER, C1, 0)

    await plugin.update_details(server)

    rows = [(row.cluster_id, row.state, row.message) for row in server.status.cluster_statuses]
    assert rows == [("c1", CREATING, "1/2 replicas ready"), ("c2", SERVING, "")]
    assert [
        [(c.type, c.status, c.reason) for c in row.conditions]
        for row in server.status.cluster_statuses
    ] == [
        [("BackendProvision", UNKNOWN, "RollingInProgress")],
        [("BackendProvision", TRUE, "")],
    ]


async def test_details_of_an_unreachable_cluster_keep_the_last_state(
    rig: ControlRig, plugin: StockPlugin
) -> None:
    server = await rig.provide(clusters=["c1"])
    await plugin.update_details(server)
    rig.backend.fail_reads = Unavailable("cluster away")

    await plugin.update_details(server)

    (row,) = server.status.cluster_statuses
    assert (row.state, row.message) == (SERVING, "cluster away")
    condition = find_condition(row.conditions, "BackendProvision")
    assert condition is not None
    assert condition.reason == "StatusCheckFailed"


async def test_details_of_a_cluster_never_seen_are_empty(
    rig: ControlRig, plugin: StockPlugin
) -> None:
    server = an_inference_server(clusters=["c1"])
    rig.backend.fail_reads = Unavailable("cluster away")

    await plugin.update_details(server)

    assert server.status.cluster_statuses[0].state == v2.INFERENCE_SERVER_STATE_INVALID


class FailedBackend(FakeBackend):
    """Reports every cluster as failed."""

    async def get_server_status(
        self, server: v2.InferenceServer, target: v2.ClusterTarget
    ) -> ServerStatus:
        return ServerStatus(state=ServerState.FAILED, message="no more restarts")


async def test_details_of_a_failed_cluster_say_why(rig: ControlRig, plugin: StockPlugin) -> None:
    rig.backends._backends[v2.BACKEND_TYPE_TRITON] = FailedBackend(rig.world)
    server = an_inference_server(clusters=["c1"])

    await plugin.update_details(server)

    (row,) = server.status.cluster_statuses
    assert (row.state, row.conditions[0].status, row.conditions[0].message) == (
        FAILED,
        FALSE,
        "no more restarts",
    )


async def test_unchanged_details_change_no_byte(rig: ControlRig, plugin: StockPlugin) -> None:
    server = await rig.provide(clusters=["c1"])
    await plugin.update_details(server)
    before = server.status.SerializeToString(deterministic=True)
    rig.advance(100)

    await plugin.update_details(server)

    assert server.status.SerializeToString(deterministic=True) == before


async def test_details_of_an_unknown_backend_are_left_alone(
    rig: ControlRig, plugin: StockPlugin
) -> None:
    server = an_inference_server(clusters=["c1"])
    server.spec.backend_type = v2.BACKEND_TYPE_DYNAMO

    await plugin.update_details(server)

    assert not server.status.cluster_statuses


async def test_details_that_are_refused_are_an_error(rig: ControlRig, plugin: StockPlugin) -> None:
    rig.backend.fail_reads = Denied("forbidden")

    with pytest.raises(Denied):
        await plugin.update_details(an_inference_server(clusters=["c1"]))


def test_conditions_of_the_other_plugin_are_dropped(plugin: StockPlugin) -> None:
    server = an_inference_server()
    server.status.conditions.extend([a_condition("Validation"), a_condition("Cleanup")])

    plugin.update_conditions(server, plugin.deletion_plugin(server))

    assert [condition.type for condition in server.status.conditions] == ["Cleanup"]


def events_of(
    old: "v2.InferenceServerState", new: "v2.InferenceServerState", error: str = ""
) -> list[tuple[str, str, str]]:
    recorder, before, after = FakeRecorder(), an_inference_server(), an_inference_server()
    before.status.state, after.status.state = old, new
    after.status.conditions.append(a_condition("Validation", TRUE))
    after.status.conditions.append(a_condition("Provision", FALSE, reason="X", message="no disk"))
    after.status.conditions.append(a_condition("Health", UNKNOWN, reason="Y", message="later"))
    record_changes(recorder, before, after, error)
    return [(event.type, event.reason, event.message) for event in recorder.events]


@pytest.mark.parametrize(
    ("old", "new", "error", "expected"),
    [
        pytest.param(CREATING, CREATING, "", [], id="nothing"),
        pytest.param(
            CREATING,
            SERVING,
            "",
            [("Normal", "CreationCompleted", "every cluster serves")],
            id="serving",
        ),
        pytest.param(
            CREATING,
            FAILED,
            "",
            [("Warning", "CreationFailed", "Provision: no disk")],
            id="failed",
        ),
        pytest.param(
            SERVING,
            DELETING,
            "",
            [
                (
                    "Normal",
                    "StateChange",
                    "INFERENCE_SERVER_STATE_SERVING to INFERENCE_SERVER_STATE_DELETING",
                )
            ],
            id="deleting",
        ),
        pytest.param(
            CREATING,
            CREATING,
            "HealthCheck: broken",
            [("Warning", "ReconciliationError", "HealthCheck: broken")],
            id="error",
        ),
    ],
)
def test_events_tell_what_a_pass_changed(
    old: "v2.InferenceServerState",
    new: "v2.InferenceServerState",
    error: str,
    expected: list[tuple[str, str, str]],
) -> None:
    assert events_of(old, new, error) == expected


def test_a_failure_without_a_reason_is_still_told() -> None:
    recorder, before, after = FakeRecorder(), an_inference_server(), an_inference_server()
    after.status.state = FAILED

    record_changes(recorder, before, after, "")

    assert recorder.events[0].message == "a step failed"


def test_connections_that_are_not_used_are_named() -> None:
    recorder, server = FakeRecorder(), an_inference_server(clusters=["c1", "c2", "c3"])
    server.spec.cluster_targets[0].kubernetes.host = "https://one"
    server.spec.cluster_targets[2].kubernetes.host = "https://three"

    record_local_meaning(recorder, server)

    assert recorder.reasons == ["LocalClusters"]
    assert "cluster targets c1, c3 are not used here" in recorder.events[0].message


def test_resources_that_are_not_limited_are_named() -> None:
    recorder, server = FakeRecorder(), an_inference_server()
    server.spec.init_spec.resource_spec.cpu = 2
    server.spec.init_spec.resource_spec.memory = "4Gi"

    record_local_meaning(recorder, server)

    assert recorder.reasons == ["ResourcesNotLimited"]
    assert recorder.events[0].message.startswith("cpu, memory of spec.init_spec.resource_spec")
