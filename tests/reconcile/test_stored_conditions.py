"""What ends a lifecycle is stored TRUE once, and stays in the snapshot: somebody waits for it."""

from dataclasses import replace
from typing import Any

import pytest

from maserve.base.errors import Unavailable
from maserve.base.keys import ClusterId
from maserve.conditions import TRUE
from maserve.modelconfig import Phase
from maserve.testing.builders import DEPLOYMENT, SERVER, a_deployment, a_model
from maserve.testing.control_rig import ControlRig
from maserve.wire import v2

C1 = ClusterId("c1")


class WatchedStore:
    """Passes everything on and keeps each Deployment's status as it was written."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.written: list[v2.DeploymentStatus] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def update_status(self, resource: Any) -> Any:
        stored = await self._store.update_status(resource)
        self.written.append(stored.status)
        return stored


@pytest.fixture
async def watched(rig: ControlRig) -> WatchedStore:
    store = WatchedStore(rig.store)
    rig.deployments = replace(rig.deployments, store=store)
    return store


@pytest.fixture
async def ready(rig: ControlRig, watched: WatchedStore) -> ControlRig:
    await rig.provide(clusters=("c1", "c2"))
    for model in ("m1", "m2"):
        await rig.store.create(a_model(model))
    await rig.store.create(a_deployment(desired="m1"))
    return rig


async def wish(rig: ControlRig, model: str) -> None:
    deployment = await rig.deployment()
    deployment.spec.desired_revision.name = model
    deployment.spec.desired_revision.namespace = "ns" if model else ""
    if not model:
        deployment.spec.ClearField("desired_revision")
    await rig.store.update(deployment)


def true_at(watched: WatchedStore, stage: "v2.DeploymentStage") -> list[str]:
    """Return which conditions were TRUE in the first write that had the stage."""
    status = next(each for each in watched.written if each.stage == stage)
    return [each.type for each in status.conditions if each.status == TRUE]


def snapshot(deployment: v2.Deployment) -> list[str]:
    return [each.type for each in deployment.status.conditions_snapshot if each.status == TRUE]


ROLLOUT = [
    "Validated",
    "AssetsPrepared",
    "PlacementPrepared",
    "CanaryRolloutComplete-c1",
    "RollingRolloutComplete-c1",
    "TrafficRoutingConfigured-c1",
    "SoakComplete-c1",
    "CanaryRolloutComplete-c2",
    "RollingRolloutComplete-c2",
    "TrafficRoutingConfigured-c2",
    "SoakComplete-c2",
    "DiscoveryRoutingConfigured",
    "ModelCleanupComplete-c1",
    "ModelCleanupComplete-c2",
    "RolloutComplete",
]


async def test_every_condition_of_a_rollout_is_stored_true_and_kept(
    ready: ControlRig, watched: WatchedStore
) -> None:
    await ready.run_deployment()

    deployment = await ready.deployment()
    assert true_at(watched, v2.DEPLOYMENT_STAGE_ROLLOUT_COMPLETE) == ROLLOUT
    assert snapshot(deployment) == ROLLOUT
    assert [each.type for each in deployment.status.conditions] == ["StateSteady"]
    (first,) = {
        each.current_revision.name
        for each in watched.written
        if each.stage == v2.DEPLOYMENT_STAGE_ROLLOUT_COMPLETE
    }
    assert first == "m1"


async def test_a_failed_rollout_and_its_rollback_are_kept_side_by_side(
    ready: ControlRig, watched: WatchedStore
) -> None:
    await ready.run_deployment()
    ready.world.broken["m2"] = "bad weights"
    await wish(ready, "m2")

    await ready.run_deployment()

    rollback = ["RollbackComplete-c1", "RollbackComplete-c2", "RollbackComplete"]
    assert true_at(watched, v2.DEPLOYMENT_STAGE_ROLLBACK_COMPLETE) == rollback
    kept = [each.type for each in (await ready.deployment()).status.conditions_snapshot]
    assert kept == [*ROLLOUT, *rollback]


async def test_a_rollback_of_an_interrupted_rollout_is_kept_alone(
    ready: ControlRig, watched: WatchedStore
) -> None:
    await ready.run_deployment()
    ready.world.slow["m2"] = 30.0
    await wish(ready, "m2")
    await ready.settle_deployment()
    ready.world.kill(SERVER, C1, 0)
    ready.world.kill(SERVER, C1, 1)

    await ready.run_deployment()

    rollback = ["RollbackComplete-c1", "RollbackComplete-c2", "RollbackComplete"]
    assert sorted(true_at(watched, v2.DEPLOYMENT_STAGE_ROLLBACK_COMPLETE)) == sorted(rollback)
    assert sorted(snapshot(await ready.deployment())) == sorted(rollback)


async def test_a_cleanup_is_stored_true_and_kept(ready: ControlRig, watched: WatchedStore) -> None:
    await ready.run_deployment()
    await wish(ready, "")

    await ready.run_deployment(rounds=3)

    assert true_at(watched, v2.DEPLOYMENT_STAGE_CLEAN_UP_COMPLETE) == ["CleanupComplete"]
    assert snapshot(await ready.deployment()) == ["CleanupComplete"]


async def test_a_deletion_is_stored_true_before_the_object_goes(
    ready: ControlRig, watched: WatchedStore
) -> None:
    await ready.run_deployment()
    await ready.store.delete(v2.Deployment, DEPLOYMENT)

    await ready.run_deployment(rounds=3)

    assert true_at(watched, v2.DEPLOYMENT_STAGE_CLEAN_UP_COMPLETE) == ["CleanupComplete"]
    assert await ready.store.find(v2.Deployment, DEPLOYMENT) is None


async def test_a_new_rollout_begins_with_nothing_of_an_earlier_one(
    ready: ControlRig, watched: WatchedStore
) -> None:
    await ready.run_deployment()
    await wish(ready, "m2")
    watched.written.clear()

    await ready.settle_deployment()

    assert not any(each.conditions_snapshot for each in watched.written)
    assert "RolloutComplete" not in [
        each.type for each in watched.written[0].conditions if each.status == TRUE
    ]


async def test_conditions_of_a_failed_rollout_do_not_count_for_its_rollback(
    ready: ControlRig, watched: WatchedStore
) -> None:
    await ready.run_deployment()
    await wish(ready, "m2")
    await ready.settle_deployment()
    ready.model_config.fail_writes = Unavailable("config away")
    await ready.run_deployment(rounds=70)
    ready.model_config.fail_writes = None

    await ready.run_deployment()

    assert ready.entries("c1") == ready.entries("c2") == {"m1": Phase.SERVING}
    rolling_back = [
        each for each in watched.written if each.stage == v2.DEPLOYMENT_STAGE_ROLLBACK_IN_PROGRESS
    ]
    assert {each.type for status in rolling_back for each in status.conditions} == {
        "RollbackComplete-c1",
        "RollbackComplete-c2",
        "RollbackComplete",
    }
