"""What a server's spec must say before anything is made (extension guide, section 3)."""

from collections.abc import Callable

import pytest

from maserve.conditions import FALSE, TRUE
from maserve.inferenceserver.stock.creation.validation import (
    ROLLOUT_STRATEGY,
    Validation,
    find_problem,
)
from maserve.testing.builders import an_inference_server
from maserve.testing.control_rig import ControlRig
from maserve.testing.expect import act, expect_condition
from maserve.wire import v2

Change = Callable[[v2.InferenceServer], None]


def nothing(_server: v2.InferenceServer) -> None:
    return


def use_dynamo(server: v2.InferenceServer) -> None:
    server.spec.backend_type = v2.BACKEND_TYPE_DYNAMO


def no_type(server: v2.InferenceServer) -> None:
    server.spec.backend_type = v2.BACKEND_TYPE_INVALID


def no_cluster(server: v2.InferenceServer) -> None:
    del server.spec.cluster_targets[:]


def unnamed_cluster(server: v2.InferenceServer) -> None:
    server.spec.cluster_targets.add()


def same_cluster_twice(server: v2.InferenceServer) -> None:
    server.spec.cluster_targets.add(cluster_id="c1")


def at_once(server: v2.InferenceServer) -> None:
    server.metadata.annotations[ROLLOUT_STRATEGY] = "parallel"


def rolling(server: v2.InferenceServer) -> None:
    server.metadata.annotations[ROLLOUT_STRATEGY] = "rolling"


def negative(server: v2.InferenceServer) -> None:
    server.spec.init_spec.num_instances = -1


def no_instances(server: v2.InferenceServer) -> None:
    server.spec.ClearField("init_spec")


@pytest.mark.parametrize(
    ("change", "reason", "says"),
    [
        pytest.param(use_dynamo, "InvalidBackendType", "BACKEND_TYPE_DYNAMO", id="backend"),
        pytest.param(no_type, "InvalidBackendType", "BACKEND_TYPE_INVALID", id="no-backend"),
        pytest.param(no_cluster, "NoClusterTargets", "spec.cluster_targets", id="no-cluster"),
        pytest.param(
            unnamed_cluster,
            "InvalidClusterTarget",
            "spec.cluster_targets[].cluster_id must not be empty",
            id="unnamed-cluster",
        ),
        pytest.param(
            same_cluster_twice,
            "InvalidClusterTarget",
            "spec.cluster_targets lists c1 twice",
            id="same-cluster-twice",
        ),
        pytest.param(at_once, "InvalidRolloutStrategy", "must be rolling: 'parallel'", id="pace"),
        pytest.param(
            negative, "InvalidInstances", "spec.init_spec.num_instances", id="negative-count"
        ),
    ],
)
async def test_a_broken_rule_fails_naming_the_field(
    rig: ControlRig, change: Change, reason: str, says: str
) -> None:
    server = an_inference_server(clusters=["c1", "c2"])
    change(server)

    expect_condition(await act(Validation(rig.server_ports), server), FALSE, reason, says=says)


@pytest.mark.parametrize("change", [nothing, rolling, no_instances])
async def test_a_valid_server_passes(rig: ControlRig, change: Change) -> None:
    server = an_inference_server(clusters=["c1", "c2"])
    change(server)

    expect_condition(await act(Validation(rig.server_ports), server), TRUE)


def test_a_type_nobody_has_a_name_for_is_shown_as_its_number() -> None:
    server = an_inference_server()
    server.spec.MergeFromString(b"\x30\x63")

    problem = find_problem(server, backend_known=False)

    assert problem == ("InvalidBackendType", "spec.backend_type 99 has no backend here")
