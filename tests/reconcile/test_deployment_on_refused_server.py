"""A Deployment that waits for a server says what the server says of itself."""

import pytest

from maserve.base.errors import Unavailable
from maserve.conditions import first_unmet
from maserve.testing.builders import a_deployment, a_model, an_inference_server
from maserve.testing.control_rig import ControlRig
from maserve.wire import api


@pytest.fixture
async def waiting(rig: ControlRig) -> ControlRig:
    await rig.store.create(a_model("m1"))
    await rig.store.create(a_deployment(desired="m1"))
    return rig


async def unmet(rig: ControlRig) -> api.Condition:
    await rig.settle_server()
    await rig.settle_deployment()
    found = first_unmet((await rig.deployment()).status.conditions)
    assert found is not None
    return found


async def test_a_refused_server_is_quoted(waiting: ControlRig) -> None:
    await waiting.store.create(an_inference_server(clusters=()))

    condition = await unmet(waiting)

    assert condition.reason == "NoClusterServing"
    assert "InferenceServer ns/is: Validation: " in condition.message
    assert "spec.cluster_targets" in condition.message


async def test_a_server_that_is_not_provisioned_yet_is_quoted(waiting: ControlRig) -> None:
    waiting.world.start_s = 60.0
    await waiting.store.create(an_inference_server())

    condition = await unmet(waiting)

    assert condition.message == (
        "waiting for clusters to serve: c1 (InferenceServer ns/is: BackendProvision: "
        "provisioning cluster c1: 0/2 replicas ready)"
    )


async def test_a_server_whose_name_the_gateway_refuses_is_quoted(waiting: ControlRig) -> None:
    waiting.routes.fail_writes = Unavailable("the gateway serves /is for namespace other")
    await waiting.store.create(an_inference_server())
    await waiting.run_server(rounds=3)

    condition = await unmet(waiting)

    assert (condition.type, condition.reason) == (
        "CanaryRolloutComplete-c1",
        "InferenceServerNotReady",
    )
    assert condition.message == (
        "InferenceServer ns/is: DiscoveryRouteProvision: the gateway serves /is for namespace other"
    )
