"""What users do, told to a `Simulation`, and how the world looks at the end."""

from collections.abc import Awaitable, Callable

from maserve.base.errors import Conflict, Exists, NotFound
from maserve.base.keys import Key
from maserve.conditions import TRUE, find_condition
from maserve.resource.kinds import Resource
from maserve.testing.builders import a_deployment, a_model, an_inference_server
from maserve.testing.invariants import discovery_rules, traffic_rules
from maserve.testing.simulation import Simulation
from maserve.testing.taps import Crash, Tap
from maserve.wire import v2

Story = Callable[[Simulation], Awaitable[None]]

SERVER = Key("ns", "is")
DEPLOYMENT = Key("ns", "d")

_CANARY = "CanaryRolloutComplete-c2"
_COMPLETE = v2.DEPLOYMENT_STAGE_ROLLOUT_COMPLETE
_ROLLED_BACK = v2.DEPLOYMENT_STAGE_ROLLBACK_COMPLETE
_SERVING = v2.INFERENCE_SERVER_STATE_SERVING


async def first_rollout(sim: Simulation) -> None:
    """Apply everything at once; ends when m1 is live in both clusters."""
    for model in ("m1", "m2", "m3"):
        await ensure(sim, a_model(model))
    await ensure(sim, an_inference_server(clusters=("c1", "c2"), replicas=2))
    await ensure(sim, a_deployment(desired="m1"))
    await until_live(sim, "m1")
    await sim.clock.sleep(30)


async def second_rollout(sim: Simulation) -> None:
    """Roll m1 over to m2; ends when the world has come to rest."""
    await want(sim, "m2")
    await until_live(sim, "m2")
    await sim.clock.sleep(30)


async def failing_rollout(sim: Simulation) -> None:
    """Try m3, which no replica can load; ends when m1 is served alone again."""
    sim.world.broken["m3"] = "weights are missing"
    await want(sim, "m3")
    await until_stage(sim, _ROLLED_BACK)
    await sim.clock.sleep(30)


async def late_failing_rollout(sim: Simulation) -> None:
    """Try m3, which the second cluster cannot load any more; ends as `failing_rollout` does."""
    await want(sim, "m3")
    await sim.until(
        v2.Deployment,
        DEPLOYMENT,
        lambda d: d is not None and (_is_true(d, _CANARY) or d.status.stage == _ROLLED_BACK),
    )
    await failing_rollout(sim)


async def deletion(sim: Simulation) -> None:
    """Delete the Deployment and then its server; ends when nothing is left."""
    await remove(sim, v2.Deployment, DEPLOYMENT)
    await sim.until(v2.Deployment, DEPLOYMENT, lambda found: found is None)
    await remove(sim, v2.InferenceServer, SERVER)
    await sim.until(v2.InferenceServer, SERVER, lambda found: found is None)


async def tell(sim: Simulation, story: Story, tap: Tap) -> Tap:
    """Tell a story; a control plane that the tap kills is followed by another.

    Returns the last tap.
    """
    try:
        await sim.run(tap, lambda: story(sim))
    except Crash:
        tap = Tap(tap.check)
        await sim.run(tap, lambda: story(sim))
    return tap


async def ensure(sim: Simulation, resource: Resource) -> None:
    """Create it unless it is there."""
    try:
        await sim.store.create(resource)
    except Exists:
        return


async def want(sim: Simulation, model: str) -> None:
    """Point the Deployment at a model, as a user would: again when somebody else was faster."""
    while True:
        deployment = await sim.store.get(v2.Deployment, DEPLOYMENT)
        if deployment.spec.desired_revision.name == model:
            return
        deployment.spec.desired_revision.name = model
        try:
            await sim.store.update(deployment)
        except Conflict:
            continue


async def remove(sim: Simulation, kind: type[v2.Deployment | v2.InferenceServer], key: Key) -> None:
    """Delete it; absent is fine."""
    try:
        await sim.store.delete(kind, key)
    except NotFound:
        return


async def until_live(sim: Simulation, model: str) -> None:
    """Return once the rollout of `model` is complete."""
    await sim.until(
        v2.Deployment,
        DEPLOYMENT,
        lambda d: (
            d is not None
            and d.status.stage == _COMPLETE
            and d.status.current_revision.name == model
        ),
    )


async def until_stage(sim: Simulation, stage: v2.DeploymentStage) -> None:
    """Return once the Deployment is in the stage."""
    await sim.until(v2.Deployment, DEPLOYMENT, lambda d: d is not None and d.status.stage == stage)


async def until_serving(sim: Simulation) -> None:
    """Return once the server serves."""
    await sim.until(
        v2.InferenceServer, SERVER, lambda s: s is not None and s.status.state == _SERVING
    )


def picture(sim: Simulation) -> dict[str, object]:
    """Return the world without what two equal histories may differ in: times, uids, versions."""
    return {
        "servers": [_normal(each) for each in sim.fake_store.peek_all(v2.InferenceServer)],
        "deployments": [_normal(each) for each in sim.fake_store.peek_all(v2.Deployment)],
        "entries": {
            f"{server} {cluster}": sim.model_config.find_entries(server, cluster)
            for server, cluster in sorted(sim.world.groups, key=str)
        },
        "routes": _routes(sim),
        "models": {
            f"{server} {cluster}": [
                (replica.name, sorted((n, m.state) for n, m in replica.models.items()))
                for replica in replicas
            ]
            for (server, cluster), replicas in sim.world.groups.items()
        },
    }


def _routes(sim: Simulation) -> list[object]:
    return [
        (str(server), cluster, traffic_rules(sim, server, cluster), discovery_rules(sim, server))
        for server, cluster in sorted(sim.world.groups, key=str)
    ]


def _normal(resource: v2.InferenceServer | v2.Deployment) -> list[str]:
    copy = type(resource).FromString(resource.SerializeToString())
    for field in ("uid", "resourceVersion", "creationTimestamp"):
        copy.metadata.ClearField(field)
    if isinstance(copy, v2.InferenceServer):
        copy.status.update_time = ""
        for cluster in copy.status.cluster_statuses:
            _forget_times(cluster.conditions)
    _forget_times(copy.status.conditions)
    _forget_times(getattr(copy.status, "conditions_snapshot", ()))
    return str(copy).splitlines()


def _forget_times(conditions: object) -> None:
    for condition in conditions:  # type: ignore[attr-defined]  # a repeated field
        condition.last_updated_timestamp = 0
        condition.ClearField("metadata")


def _is_true(deployment: v2.Deployment, type_: str) -> bool:
    found = find_condition(deployment.status.conditions, type_)
    return found is not None and found.status == TRUE
