"""Wishes that cannot be had: what is said, what is left, and how it goes on once it can be had."""

from collections.abc import Awaitable, Callable

import pytest

from maserve.base.errors import Unavailable
from maserve.base.keys import ClusterId
from maserve.conditions import find_condition
from maserve.deployment.stock import RolloutSettings
from maserve.resource.annotations import RETRY
from maserve.testing.builders import a_deployment, a_model, an_inference_server
from maserve.testing.simulation import Simulation
from maserve.testing.stories import (
    DEPLOYMENT,
    SERVER,
    ensure,
    picture,
    remove,
    tell,
    until_live,
    until_serving,
    until_stage,
    want,
)
from maserve.testing.virtually import run_virtually, safe_tap
from maserve.wire import api, v2

BUDGET_S = 60.0
BUDGETS = RolloutSettings(model_load_timeout_s=BUDGET_S, rollback_model_load_timeout_s=BUDGET_S / 2)
AGAIN = f"to try %s again, change the annotation {RETRY}"
NOT_LIVE = "Unhealthy: no model is live"
UNDONE = v2.DEPLOYMENT_STAGE_ROLLBACK_COMPLETE
NEVER_S = 1e6

Act = Callable[[Simulation], Awaitable[None]]


def simulated(*acts: Act) -> Simulation:
    """Return a simulation with a server in two clusters in which the acts were told in order.

    Every safety rule is checked after every write.
    """
    return run_virtually(_simulated(acts))


async def _simulated(acts: tuple[Act, ...]) -> Simulation:
    sim = Simulation(settings=BUDGETS)
    for act in acts:
        await tell(sim, act, safe_tap(sim))
    return sim


async def a_server(sim: Simulation) -> None:
    await ensure(sim, an_inference_server(clusters=("c1", "c2"), replicas=2))


async def m1_is_live(sim: Simulation) -> None:
    await a_server(sim)
    await ensure(sim, a_model("m1"))
    await ensure(sim, a_deployment(desired="m1"))
    await until_live(sim, "m1")
    await sim.clock.sleep(30)


async def m1_is_wanted(sim: Simulation) -> None:
    await ensure(sim, a_deployment(desired="m1"))


async def m2_is_declared(sim: Simulation) -> None:
    await ensure(sim, a_model("m2"))


async def m2_is_wanted(sim: Simulation) -> None:
    await want(sim, "m2")


async def undone(sim: Simulation) -> None:
    await until_stage(sim, UNDONE)
    await sim.clock.sleep(30)


async def tried_again(sim: Simulation) -> None:
    deployment = await sim.store.get(v2.Deployment, DEPLOYMENT)
    deployment.metadata.annotations[RETRY] = "1"
    await sim.store.update(deployment)


def the_deployment(sim: Simulation) -> v2.Deployment:
    (deployment,) = sim.deployments()
    return deployment


def message(sim: Simulation) -> str:
    return the_deployment(sim).status.message


def condition(sim: Simulation, type_: str) -> api.Condition:
    found = find_condition(the_deployment(sim).status.conditions, type_)
    assert found is not None
    return found


def world_of(sim: Simulation) -> dict[str, object]:
    """Return all that is outside of objects: entries, routes, loaded models."""
    whole = picture(sim)
    return {name: whole[name] for name in ("entries", "routes", "models")}


def test_a_missing_server_is_named_and_waited_for() -> None:
    async def a_while(sim: Simulation) -> None:
        await sim.clock.sleep(BUDGET_S / 2)

    async def it_comes(sim: Simulation) -> None:
        await a_server(sim)
        await until_live(sim, "m1")

    waiting = simulated(lambda sim: ensure(sim, a_model("m1")), m1_is_wanted, a_while)
    found = condition(waiting, "Validated")
    assert (found.status, found.reason, found.message) == (
        api.CONDITION_STATUS_UNKNOWN,
        "InferenceServerNotFound",
        "spec.inference_server: InferenceServer ns/is not found; create it",
    )
    assert waiting.model_config.calls == []

    live = simulated(lambda sim: ensure(sim, a_model("m1")), m1_is_wanted, a_while, it_comes)
    assert the_deployment(live).status.current_revision.name == "m1"


def test_a_server_that_never_comes_fails_the_rollout_when_the_budget_is_spent() -> None:
    sim = simulated(lambda sim: ensure(sim, a_model("m1")), m1_is_wanted, undone)

    assert message(sim) == (
        "rollout of m1 failed (Validated: InferenceServerNotFound: spec.inference_server: "
        "InferenceServer ns/is not found; create it (still failing after 1m)); "
        f"no previous revision, removing it; {AGAIN % 'm1'}; {NOT_LIVE}"
    )


def test_a_server_that_never_serves_is_named_when_the_budget_is_spent() -> None:
    async def slow_start(sim: Simulation) -> None:
        sim.world.start_s = NEVER_S
        await a_server(sim)

    sim = simulated(slow_start, lambda sim: ensure(sim, a_model("m1")), m1_is_wanted, undone)

    assert message(sim) == (
        "rollout of m1 failed (PlacementPrepared: NoClusterServing: waiting for clusters to "
        "serve: c1, c2 (InferenceServer ns/is: BackendProvision: provisioning cluster c1: 0/2 "
        "replicas ready) (still failing after 1m)); no previous revision, removing it; "
        f"{AGAIN % 'm1'}; {NOT_LIVE}"
    )


async def an_artifact_is_missing(sim: Simulation) -> None:
    sim.artifacts.missing.add("file:///models/m2/")
    await m2_is_declared(sim)


async def a_package_is_of_another_kind(sim: Simulation) -> None:
    model = a_model("m2")
    model.spec.package_type = v2.DEPLOYABLE_MODEL_PACKAGE_TYPE_RAW
    await ensure(sim, model)


async def a_uri_is_missing(sim: Simulation) -> None:
    model = a_model("m2")
    del model.spec.deployable_artifact_uri[:]
    await ensure(sim, model)


async def a_uri_is_of_another_kind(sim: Simulation) -> None:
    await ensure(sim, a_model("m2", uri="hdfs://models/m2"))


async def it_fails_to_load(sim: Simulation) -> None:
    sim.world.broken["m2"] = "weights are missing"
    await m2_is_declared(sim)


async def it_never_finishes_loading(sim: Simulation) -> None:
    sim.world.slow["m2"] = NEVER_S
    await m2_is_declared(sim)


async def nothing(_sim: Simulation) -> None:
    """Declare no Model at all."""


BAD_MODELS = [
    pytest.param(
        nothing,
        "Validated: spec.desired_revision: Model ns/m2 not found; create the Model or name another",
        id="missing model",
    ),
    pytest.param(
        an_artifact_is_missing,
        "AssetsPrepared: Model m2: spec.deployable_artifact_uri: artifact file:///models/m2/ not "
        "found; put the model's files there or name another Model",
        id="missing artifact",
    ),
    pytest.param(
        a_package_is_of_another_kind,
        "Validated: Model m2: spec.package_type must be TRITON or unset, is "
        "DEPLOYABLE_MODEL_PACKAGE_TYPE_RAW",
        id="package of another kind",
    ),
    pytest.param(
        a_uri_is_missing,
        "Validated: Model m2: spec.deployable_artifact_uri is empty",
        id="no artifact",
    ),
    pytest.param(
        a_uri_is_of_another_kind,
        "Validated: Model m2: spec.deployable_artifact_uri 'hdfs://models/m2' must start "
        "with one of file://, s3://, gs://, az://, http://, https://",
        id="unknown storage",
    ),
    pytest.param(
        it_fails_to_load,
        "CanaryRolloutComplete-c1: model m2 failed to load in cluster c1 on replica "
        "triton-is-c1-0: weights are missing",
        id="fails to load",
    ),
    pytest.param(
        it_never_finishes_loading,
        "CanaryRolloutComplete-c1: CanaryLoading: model m2 on replica triton-is-c1-0 of cluster "
        "c1: LOADING (still failing after 1m)",
        id="never finishes loading",
    ),
]


@pytest.mark.parametrize(("bad", "said"), BAD_MODELS)
def test_a_bad_model_is_said_and_the_current_one_is_served_as_before(bad: Act, said: str) -> None:
    before = world_of(simulated(m1_is_live))
    sim = simulated(m1_is_live, bad, m2_is_wanted, undone)

    assert message(sim) == (f"rollout of m2 failed ({said}); rolling back to m1; {AGAIN % 'm2'}")
    assert the_deployment(sim).status.current_revision.name == "m1"
    assert the_deployment(sim).status.state == v2.DEPLOYMENT_STATE_HEALTHY
    assert world_of(sim) == before


@pytest.mark.parametrize(("bad", "said"), BAD_MODELS)
def test_a_bad_first_model_is_said_and_leaves_nothing(bad: Act, said: str) -> None:
    async def m2_is_first(sim: Simulation) -> None:
        await ensure(sim, a_deployment(desired="m2"))

    async def rest(sim: Simulation) -> None:
        await until_serving(sim)
        await sim.clock.sleep(30)

    before = world_of(simulated(a_server, rest))
    sim = simulated(a_server, rest, bad, m2_is_first, undone)

    assert message(sim) == (
        f"rollout of m2 failed ({said}); no previous revision, removing it; {AGAIN % 'm2'}; "
        f"{NOT_LIVE}"
    )
    assert the_deployment(sim).status.current_revision.name == ""
    assert world_of(sim) == before


def test_a_failure_on_one_replica_only_undoes_the_rollout_too() -> None:
    async def one_replica_cannot(sim: Simulation) -> None:
        await m2_is_wanted(sim)
        await sim.until(
            v2.Deployment,
            DEPLOYMENT,
            lambda d: d is not None and _is_true(d, "CanaryRolloutComplete-c1"),
        )
        sim.world.broken["m2"] = "no space on device"

    sim = simulated(m1_is_live, m2_is_declared, one_replica_cannot, undone)

    assert (
        "RollingRolloutComplete-c1: model m2 failed to load in cluster c1 on replica "
        "triton-is-c1-1: no space on device" in message(sim)
    )
    assert the_deployment(sim).status.current_revision.name == "m1"


def test_a_model_that_was_repaired_is_rolled_out_when_asked_again() -> None:
    async def it_is_repaired(sim: Simulation) -> None:
        sim.artifacts.missing.clear()
        await tried_again(sim)
        await until_live(sim, "m2")

    sim = simulated(m1_is_live, an_artifact_is_missing, m2_is_wanted, undone, it_is_repaired)

    assert the_deployment(sim).status.current_revision.name == "m2"
    assert message(sim) == ""


def test_another_model_is_rolled_out_after_a_bad_one() -> None:
    async def m3(sim: Simulation) -> None:
        await ensure(sim, a_model("m3"))
        await want(sim, "m3")
        await until_live(sim, "m3")

    sim = simulated(m1_is_live, it_fails_to_load, m2_is_wanted, undone, m3)

    assert message(sim) == ""


def test_a_bad_model_can_be_deleted_and_leaves_nothing() -> None:
    async def delete(sim: Simulation) -> None:
        await remove(sim, v2.Deployment, DEPLOYMENT)
        await sim.until(v2.Deployment, DEPLOYMENT, lambda found: found is None)
        await sim.clock.sleep(30)

    sim = simulated(a_server, it_never_finishes_loading, m1_is_wanted, m2_is_wanted, undone, delete)

    assert sim.deployments() == ()
    assert world_of(sim) == world_of(simulated(a_server, lambda s: s.clock.sleep(60)))


def test_a_target_that_nobody_serves_is_refused_by_its_kind() -> None:
    async def an_offline_one(sim: Simulation) -> None:
        deployment = a_deployment(desired="m1")
        deployment.spec.definition.type = v2.TARGET_TYPE_OFFLINE
        await ensure(sim, deployment)
        await sim.clock.sleep(30)

    sim = simulated(m2_is_declared, an_offline_one)

    assert message(sim) == "no plugin found for targetType=TARGET_TYPE_OFFLINE, subType="
    assert the_deployment(sim).status.state == v2.DEPLOYMENT_STATE_INVALID
    assert the_deployment(sim).status.stage == v2.DEPLOYMENT_STAGE_INVALID


def test_a_broken_model_config_is_named_and_waited_for() -> None:
    place = (SERVER, ClusterId("c2"))

    async def it_breaks(sim: Simulation) -> None:
        text = "model-list.json is not JSON: line 1"
        sim.model_config.broken[place] = Unavailable(text)
        await m2_is_wanted(sim)
        await sim.clock.sleep(BUDGET_S / 2)

    async def it_is_repaired(sim: Simulation) -> None:
        sim.model_config.broken.clear()
        await until_live(sim, "m2")

    broken = simulated(m1_is_live, m2_is_declared, it_breaks)
    found = condition(broken, "CanaryRolloutComplete-c2")
    assert (found.reason, found.message) == (
        "ModelConfigReadFailed",
        "model-list.json is not JSON: line 1",
    )
    live = simulated(m1_is_live, m2_is_declared, it_breaks, it_is_repaired)
    assert the_deployment(live).status.current_revision.name == "m2"


def test_a_rollback_that_ran_out_of_time_is_finished_once_it_can_be() -> None:
    place = (SERVER, ClusterId("c2"))
    versions: list[str] = []

    async def it_cannot_be_undone(sim: Simulation) -> None:
        sim.model_config.broken[place] = Unavailable("model-list.json is not JSON: line 1")
        await m2_is_wanted(sim)
        await until_stage(sim, v2.DEPLOYMENT_STAGE_ROLLBACK_FAILED)
        await sim.clock.sleep(30)

    async def an_hour(sim: Simulation) -> None:
        versions.append(the_deployment(sim).metadata.resourceVersion)
        await sim.clock.sleep(3600)
        versions.append(the_deployment(sim).metadata.resourceVersion)

    async def it_is_repaired(sim: Simulation) -> None:
        sim.model_config.broken.clear()
        await undone(sim)

    before = world_of(simulated(m1_is_live))
    acts = (m1_is_live, it_fails_to_load, it_cannot_be_undone, an_hour)
    failed = simulated(*acts)
    assert message(failed) == (
        "RollbackComplete-c2: ModelConfigReadFailed: model-list.json is not JSON: line 1 "
        "(still failing after 30s); it is tried again"
    )
    assert versions[0] == versions[1]

    mended = simulated(*acts, it_is_repaired)
    assert message(mended) == (
        "Rollout failed: m2 is not live (CanaryRolloutComplete-c1: model m2 failed to load in "
        f"cluster c1 on replica triton-is-c1-0: weights are missing); {AGAIN % 'm2'}"
    )
    assert world_of(mended) == before


BAD_SERVERS = [
    pytest.param(
        lambda server: setattr(server.spec, "backend_type", v2.BACKEND_TYPE_INVALID),
        "spec.backend_type BACKEND_TYPE_INVALID has no backend here",
        id="no backend",
    ),
    pytest.param(
        lambda server: server.spec.ClearField("cluster_targets"),
        "spec.cluster_targets needs at least one cluster",
        id="no clusters",
    ),
    pytest.param(
        lambda server: setattr(server.spec.init_spec, "num_instances", -1),
        "spec.init_spec.num_instances must not be negative",
        id="fewer than no replicas",
    ),
    pytest.param(
        lambda server: server.metadata.annotations.update(
            {"michelangelo.ai/cluster-rollout-strategy": "all"}
        ),
        "annotation michelangelo.ai/cluster-rollout-strategy must be rolling: 'all'",
        id="unknown strategy",
    ),
]


@pytest.mark.parametrize(("change", "said"), BAD_SERVERS)
def test_a_bad_server_is_said_and_nothing_is_made(
    change: Callable[[v2.InferenceServer], object], said: str
) -> None:
    async def bad(sim: Simulation) -> None:
        server = an_inference_server()
        change(server)
        await ensure(sim, server)
        await sim.clock.sleep(30)

    async def mended(sim: Simulation) -> None:
        server = await sim.store.get(v2.InferenceServer, SERVER)
        server.spec.CopyFrom(an_inference_server().spec)
        server.metadata.annotations.pop("michelangelo.ai/cluster-rollout-strategy", None)
        await sim.store.update(server)
        await until_serving(sim)

    sim = simulated(bad)
    server = sim.server(SERVER)
    assert server is not None
    assert server.status.state == v2.INFERENCE_SERVER_STATE_FAILED
    found = find_condition(server.status.conditions, "Validation")
    assert found is not None
    assert (found.status, found.message) == (api.CONDITION_STATUS_FALSE, said)
    assert said in sim.recorder.events[-1].message
    assert sim.backend.calls == []
    assert simulated(bad, mended).backend.calls != []


def test_a_server_whose_backend_was_taken_away_is_still_cleaned_up() -> None:
    async def no_backend(sim: Simulation) -> None:
        server = await sim.store.get(v2.InferenceServer, SERVER)
        server.spec.backend_type = v2.BACKEND_TYPE_INVALID
        await sim.store.update(server)
        await sim.clock.sleep(30)

    async def delete(sim: Simulation) -> None:
        await remove(sim, v2.InferenceServer, SERVER)
        await sim.until(v2.InferenceServer, SERVER, lambda found: found is None)

    sim = simulated(a_server, until_serving, no_backend, delete)

    assert sim.world.groups == {}


def _is_true(deployment: v2.Deployment, type_: str) -> bool:
    found = find_condition(deployment.status.conditions, type_)
    return found is not None and found.status == api.CONDITION_STATUS_TRUE
