"""What `maserve describe` is told: as much as can be known, whatever else fails."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from maserve.backends import ReplicaStatus
from maserve.base.errors import Unavailable
from maserve.base.keys import ClusterId, Key
from maserve.cmd.inspector import LocalInspector
from maserve.cmd.inspector import Replicas as ReplicaViews
from maserve.host import DataFolder
from maserve.resource import get_kind
from maserve.store import EventRow
from maserve.testing.builders import SERVER
from maserve.testing.clock import FakeClock
from maserve.testing.control_rig import ControlRig
from maserve.testing.store_fake import FakeStore
from maserve.testing.world import FakeWorld
from maserve.wire import ext

KIND = get_kind("InferenceServer")
C1 = ClusterId("c1")


@pytest.fixture
def rig() -> ControlRig:
    clock = FakeClock()
    return ControlRig(FakeStore(clock=clock), clock)


class NoEvents:
    """An event log that stays empty."""

    async def record(self, kind: str, key: Key, **what: str) -> None:
        """Keep nothing."""

    async def list(self, kind: str, key: Key) -> tuple[EventRow, ...]:
        return ()


@dataclass(frozen=True)
class Replicas:
    """The replicas of a fake world, as people see them."""

    world: FakeWorld

    def views(self, server: Key, cluster: ClusterId) -> tuple[ReplicaStatus, ...]:
        return self.world.statuses(server, cluster)


class NoReplicas:
    """What is on this machine of a server that another backend runs elsewhere."""

    def views(self, _server: Key, _cluster: ClusterId) -> tuple[ReplicaStatus, ...]:
        return ()


async def described(
    rig: ControlRig, folder: Path, replicas: ReplicaViews | None = None
) -> ext.DescribeResponse:
    inspector = LocalInspector(
        store=rig.store,
        events=NoEvents(),
        backends=rig.backends,
        replicas=replicas or Replicas(rig.world),
        model_config=rig.model_config,
        routes=rig.routes,
        publisher=rig.publisher,
        folder=DataFolder(folder),
        clock=rig.clock,
    )
    return await inspector.describe(KIND, SERVER)


async def test_replicas_are_shown_with_their_models(rig: ControlRig, tmp_path: Path) -> None:
    await rig.provide(clusters=["c1"], replicas=2)
    await rig.list_model("m1")
    (cluster,) = (await described(rig, tmp_path)).clusters
    assert [(each.name, each.ready) for each in cluster.replicas] == [
        (name, True) for name in ("triton-is-c1-0", "triton-is-c1-1")
    ]
    assert [model.state for each in cluster.replicas for model in each.models] == ["READY"] * 2
    assert [entry.name for entry in cluster.entries] == ["m1"]


async def test_replicas_of_another_backend_are_shown_with_their_models(
    rig: ControlRig, tmp_path: Path
) -> None:
    await rig.provide(clusters=["c1"], replicas=2)
    await rig.list_model("m1")
    (cluster,) = (await described(rig, tmp_path, NoReplicas())).clusters
    assert [[model.name for model in each.models] for each in cluster.replicas] == [["m1"]] * 2


async def test_a_list_that_cannot_be_read_hides_no_replica(rig: ControlRig, tmp_path: Path) -> None:
    await rig.provide(clusters=["c1"], replicas=2)
    rig.model_config.fail_next(Unavailable("list is malformed"))
    (cluster,) = (await described(rig, tmp_path)).clusters
    assert (cluster.error, len(cluster.replicas)) == ("list is malformed", 2)


async def test_a_backend_that_does_not_answer_hides_no_replica(
    rig: ControlRig, tmp_path: Path
) -> None:
    await rig.provide(clusters=["c1"], replicas=2)
    rig.backend.fail_next(Unavailable("away"))
    (cluster,) = (await described(rig, tmp_path)).clusters
    assert (cluster.error, len(cluster.replicas)) == ("away", 2)


async def test_a_cluster_that_is_being_left_is_shown_until_it_is_empty(
    rig: ControlRig, tmp_path: Path
) -> None:
    server = await rig.provide(clusters=["c1", "c2"], replicas=1)
    del server.spec.cluster_targets[0]
    await rig.store.update(server)
    shown = await described(rig, tmp_path)
    assert [(each.cluster_id, len(each.replicas)) for each in shown.clusters] == [
        ("c2", 1),
        ("c1", 1),
    ]
