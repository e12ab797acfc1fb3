"""Canary and rolling load: the model is READY on one replica, then on every one."""

import pytest

from maserve.base.errors import Denied, Unavailable
from maserve.base.keys import ClusterId, ModelName
from maserve.conditions import FALSE, TRUE, UNKNOWN, read_progress
from maserve.deployment.stock.rollout.canary import Canary
from maserve.deployment.stock.rollout.rolling import Rolling
from maserve.deployment.stock.site import Trouble
from maserve.modelconfig import Entry, Phase
from maserve.testing.builders import SERVER, a_deployment, a_model, a_target
from maserve.testing.control_rig import ControlRig
from maserve.testing.expect import act, expect_condition, look
from maserve.wire import v2

BUDGET_S = 900.0
C1 = ClusterId("c1")
FIRST, SECOND = "triton-is-c1-0", "triton-is-c1-1"


@pytest.fixture
async def served(rig: ControlRig) -> ControlRig:
    await rig.provide(clusters=("c1", "c2"))
    await rig.store.create(a_model("m2"))
    return rig


@pytest.fixture
def deployment() -> v2.Deployment:
    return a_deployment(desired="m2", candidate="m2", placed=["c1", "c2"])


def canary_pod(rig: ControlRig) -> str:
    entries = rig.model_config.find_entries(SERVER, C1)
    assert entries
    return entries[0].canary_pod


async def test_a_canary_goes_to_the_first_running_replica_by_name(
    served: ControlRig, deployment: v2.Deployment
) -> None:
    actor = Canary(served.site())

    expect_condition(await look(actor, deployment), UNKNOWN, "CanaryNotStarted")
    condition = await act(actor, deployment)

    expect_condition(condition, UNKNOWN, "CanaryLoading", says=f"loads on replica {FIRST}")
    assert served.entries() == {"m2": Phase.CANARY}
    assert canary_pod(served) == FIRST == read_progress(condition).replica
    assert served.entries("c2") == {}


async def test_a_canary_is_done_when_its_replica_is_ready(
    served: ControlRig, deployment: v2.Deployment
) -> None:
    actor = Canary(served.site())
    await act(actor, deployment)
    expect_condition(await look(actor, deployment), UNKNOWN, "CanaryLoading", says="LOADING")
    served.advance(served.world.load_s)

    expect_condition(await act(actor, deployment), TRUE)


async def test_a_canary_once_done_is_not_asked_again(
    served: ControlRig, deployment: v2.Deployment
) -> None:
    actor = Canary(served.site())
    await act(actor, deployment)
    served.advance(served.world.load_s)
    await act(actor, deployment)
    served.backend.fail_reads = Unavailable("away")

    expect_condition(await look(actor, deployment), TRUE)


@pytest.mark.parametrize("phase", [Phase.STAGED, Phase.SERVING])
async def test_a_model_that_is_further_is_a_canary_once_it_was_seen_ready(
    served: ControlRig, deployment: v2.Deployment, phase: Phase
) -> None:
    await served.list_model("m2", phase, loaded=False)
    actor = Canary(served.site())

    expect_condition(await act(actor, deployment), UNKNOWN, "CanaryLoading", says="0/2 replicas")
    served.advance(served.world.load_s)

    expect_condition(await act(actor, deployment), TRUE)
    assert served.entries() == {"m2": phase}


@pytest.mark.parametrize("phase", [Phase.STAGED, Phase.SERVING])
async def test_a_model_that_is_further_and_fails_everywhere_is_no_canary(
    served: ControlRig, deployment: v2.Deployment, phase: Phase
) -> None:
    served.world.broken["m2"] = "bad weights"
    await served.list_model("m2", phase)

    expect_condition(
        await act(Canary(served.site()), deployment), FALSE, "CanaryLoadFailed", says="bad weights"
    )
    assert served.entries() == {"m2": phase}


async def test_an_entry_of_a_phase_that_nobody_knows_becomes_a_canary(
    served: ControlRig, deployment: v2.Deployment
) -> None:
    await served.list_model("m2", "later")

    await act(Canary(served.site()), deployment)

    assert served.entries() == {"m2": Phase.CANARY}


async def test_a_canary_keeps_its_replica_when_the_record_is_lost(
    served: ControlRig, deployment: v2.Deployment
) -> None:
    await served.list_model("m2", Phase.CANARY, replica=SECOND, loaded=False)

    expect_condition(
        await act(Canary(served.site()), deployment), UNKNOWN, "CanaryLoading", says=SECOND
    )
    assert canary_pod(served) == SECOND


async def test_a_canary_whose_replica_is_gone_is_moved(
    served: ControlRig, deployment: v2.Deployment
) -> None:
    await served.list_model("m2", Phase.CANARY, replica="triton-is-c1-9")
    actor = Canary(served.site())

    expect_condition(await look(actor, deployment), UNKNOWN, "CanaryLoading", says="gone")
    await act(actor, deployment)

    assert canary_pod(served) == FIRST


async def test_a_canary_whose_replica_is_down_is_moved(
    served: ControlRig, deployment: v2.Deployment
) -> None:
    actor = Canary(served.site())
    await act(actor, deployment)
    served.world.kill(SERVER, C1, 0)

    await act(actor, deployment)

    assert canary_pod(served) == SECOND


async def test_a_canary_waits_while_no_replica_runs(
    served: ControlRig, deployment: v2.Deployment
) -> None:
    served.world.kill(SERVER, C1, 0)
    served.world.kill(SERVER, C1, 1)
    actor = Canary(served.site())

    expect_condition(
        await act(actor, deployment), UNKNOWN, "CanaryReplicaMissing", says="no replica runs"
    )
    assert served.entries() == {}
    served.advance(BUDGET_S)
    served.world.kill(SERVER, C1, 0)
    served.world.kill(SERVER, C1, 1)
    condition = await act(actor, deployment)
    expect_condition(condition, FALSE, "CanaryLoadTimeout")
    assert condition.message.startswith("CanaryReplicaMissing: no replica runs in cluster c1")
    assert condition.message.endswith("(still failing after 15m)")


async def test_a_failed_canary_fails_at_once_with_the_frameworks_reason(
    served: ControlRig, deployment: v2.Deployment
) -> None:
    served.world.broken["m2"] = "bad weights"
    actor = Canary(served.site())
    await act(actor, deployment)
    served.advance(served.world.load_s)

    condition = await act(actor, deployment)

    expect_condition(condition, FALSE, "CanaryLoadFailed")
    assert condition.message == (
        f"model m2 failed to load in cluster c1 on replica {FIRST}: bad weights"
    )


async def test_a_slow_canary_fails_after_the_budget(
    served: ControlRig, deployment: v2.Deployment
) -> None:
    served.world.slow["m2"] = 10_000
    actor = Canary(served.site())
    await act(actor, deployment)
    served.advance(BUDGET_S - 1)
    expect_condition(await act(actor, deployment), UNKNOWN, "CanaryLoading")
    served.advance(1)

    condition = await act(actor, deployment)

    expect_condition(condition, FALSE, "CanaryLoadTimeout")
    assert condition.message == (
        f"CanaryLoading: model m2 on replica {FIRST} of cluster c1: LOADING "
        "(still failing after 15m)"
    )


async def test_a_canary_of_a_model_that_is_gone_fails_at_once(served: ControlRig) -> None:
    deployment = a_deployment(desired="m9", candidate="m9", placed=["c1"])

    expect_condition(await act(Canary(served.site()), deployment), FALSE, "ModelNotFound")


async def test_rolling_load_stages_the_model_on_every_replica(
    served: ControlRig, deployment: v2.Deployment
) -> None:
    actor = Rolling(served.site())

    expect_condition(await look(actor, deployment), UNKNOWN, "ModelLoadNotStarted")
    expect_condition(await act(actor, deployment), UNKNOWN, "ModelLoading")

    assert served.entries() == {"m2": Phase.STAGED}
    assert served.entries("c2") == {}


async def test_rolling_load_widens_a_canary(served: ControlRig, deployment: v2.Deployment) -> None:
    await served.list_model("m2", Phase.CANARY, replica=FIRST)

    await act(Rolling(served.site()), deployment)

    assert served.entries() == {"m2": Phase.STAGED}
    assert canary_pod(served) == ""


async def test_rolling_load_is_done_when_every_replica_is_ready(
    served: ControlRig, deployment: v2.Deployment
) -> None:
    await served.list_model("m2", Phase.CANARY, replica=FIRST)
    actor = Rolling(served.site())
    await act(actor, deployment)

    expect_condition(
        await act(actor, deployment), UNKNOWN, "ModelLoading", says="1/2 replicas ready"
    )
    served.advance(served.world.load_s)
    expect_condition(await act(actor, deployment), TRUE)


async def test_rolling_load_is_latched(served: ControlRig, deployment: v2.Deployment) -> None:
    await served.list_model("m2", Phase.STAGED)
    actor = Rolling(served.site())
    expect_condition(await act(actor, deployment), TRUE)
    served.world.kill(SERVER, C1, 0)

    expect_condition(await act(actor, deployment), TRUE)


async def test_rolling_load_never_takes_a_serving_model_down_a_phase(
    served: ControlRig, deployment: v2.Deployment
) -> None:
    await served.list_model("m2", Phase.SERVING, loaded=False)

    expect_condition(await act(Rolling(served.site()), deployment), UNKNOWN, "ModelLoading")
    assert served.entries() == {"m2": Phase.SERVING}


async def test_no_replica_is_not_every_replica(
    served: ControlRig, deployment: v2.Deployment
) -> None:
    await served.list_model("m2", Phase.STAGED)
    served.world.remove(SERVER, C1)

    expect_condition(await act(Rolling(served.site()), deployment), UNKNOWN, "ModelLoading")


async def test_one_failed_replica_fails_the_rolling_load_at_once(
    served: ControlRig, deployment: v2.Deployment
) -> None:
    await served.list_model("m2", Phase.CANARY, replica=FIRST)
    served.world.broken["m2"] = "bad weights"
    actor = Rolling(served.site())
    await act(actor, deployment)
    served.advance(served.world.load_s)

    expect_condition(
        await act(actor, deployment),
        FALSE,
        "ModelLoadFailed",
        says=f"model m2 failed to load in cluster c1 on replica {SECOND}: bad weights",
    )


async def test_a_slow_rolling_load_fails_after_the_budget_with_the_summary(
    served: ControlRig, deployment: v2.Deployment
) -> None:
    served.world.slow["m2"] = 10_000
    actor = Rolling(served.site())
    await act(actor, deployment)
    served.advance(BUDGET_S)

    condition = await act(actor, deployment)

    expect_condition(condition, FALSE, "ModelLoadTimeout")
    assert condition.message == (
        "ModelLoading: model m2 in cluster c1: 0/2 replicas ready, 2 running "
        f"({FIRST}: LOADING, {SECOND}: LOADING) (still failing after 15m)"
    )


@pytest.mark.parametrize("kind", [Canary, Rolling])
@pytest.mark.parametrize(
    ("port", "reason"),
    [
        pytest.param("model_config", "ModelConfigReadFailed", id="model-config"),
        pytest.param("backend", "ModelStatusCheckFailed", id="load-state"),
    ],
)
async def test_an_unreachable_cluster_is_retried(
    served: ControlRig, kind: type[Canary] | type[Rolling], port: str, reason: str
) -> None:
    await served.list_model("m2", Phase.STAGED, loaded=False)
    await served.list_model("m3", Phase.CANARY, replica=FIRST, loaded=False)
    models = {Canary: "m3", Rolling: "m2"}
    deployment = a_deployment(candidate=models[kind], placed=["c1"])
    getattr(served, port).fail_reads = Unavailable("cluster away")

    expect_condition(await act(kind(served.site()), deployment), UNKNOWN, reason, "cluster away")


@pytest.mark.parametrize(
    ("kind", "timeout"),
    [pytest.param(Canary, "CanaryLoadTimeout"), pytest.param(Rolling, "ModelLoadTimeout")],
)
async def test_a_failed_write_is_retried_until_the_budget_is_spent(
    served: ControlRig,
    deployment: v2.Deployment,
    kind: type[Canary] | type[Rolling],
    timeout: str,
) -> None:
    actor = kind(served.site())
    served.model_config.fail_writes = Unavailable("config away")

    expect_condition(await act(actor, deployment), UNKNOWN, "AddModelToConfigFailed")
    served.advance(BUDGET_S - 1)
    expect_condition(await act(actor, deployment), UNKNOWN, "AddModelToConfigFailed")
    served.advance(1)
    condition = await act(actor, deployment)

    expect_condition(condition, FALSE, timeout)
    assert condition.message == "AddModelToConfigFailed: config away (still failing after 15m)"


@pytest.mark.parametrize("kind", [Canary, Rolling])
async def test_a_denied_pod_proxy_fails_at_once(
    served: ControlRig, kind: type[Canary] | type[Rolling]
) -> None:
    await served.list_model("m2", Phase.STAGED, loaded=False)
    await served.list_model("m3", Phase.CANARY, replica=FIRST, loaded=False)
    models = {Canary: "m3", Rolling: "m2"}
    deployment = a_deployment(candidate=models[kind], placed=["c1"])
    served.backend.fail_reads = Denied("pods/proxy is forbidden")

    expect_condition(
        await act(kind(served.site()), deployment), FALSE, "ProxyDenied", "pods/proxy is forbidden"
    )


@pytest.mark.parametrize("kind", [Canary, Rolling])
async def test_a_name_that_means_another_model_already_is_refused_at_once(
    rig: ControlRig, kind: type[Canary | Rolling]
) -> None:
    await rig.provide()
    await rig.store.create(a_model("m2", uri="file:///elsewhere/m2"))
    await rig.list_model("m2", deployment="other")
    deployment = a_deployment(desired="m2", candidate="m2", placed=["c1"])

    expect_condition(
        await act(kind(rig.site()), deployment),
        FALSE,
        "ModelNameTaken",
        says="Deployment other has a model m2 from file:///models/m2/ in cluster c1 already",
    )
    assert rig.entries() == {}
    assert rig.entries(deployment="other") == {"m2": Phase.SERVING}


async def test_the_one_that_was_first_keeps_the_name(rig: ControlRig) -> None:
    await rig.provide()
    await rig.store.create(a_model("m2"))
    await rig.list_model("m2", Phase.CANARY, replica=FIRST)
    later = Entry(
        name=ModelName("m2"), storage_path="file:///elsewhere/m2/", deployment_name="other"
    )
    await rig.model_config.add_model_to_config(SERVER, a_target("c1"), later)
    deployment = a_deployment(desired="m2", candidate="m2", placed=["c1"])

    expect_condition(await act(Rolling(rig.site()), deployment), UNKNOWN, "ModelLoading")

    with pytest.raises(Trouble, match="ModelNameTaken"):
        await rig.site(deployment="other").promote(later)
