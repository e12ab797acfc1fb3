"""How long the health gate is patient with a replica that is missing, and where that is kept."""

import pytest
import structlog

from maserve.backends import LoadReport, LoadState, ReplicaLoad
from maserve.base.errors import Unavailable
from maserve.base.keys import ModelName, ReplicaName
from maserve.deployment import ObservabilityContext
from maserve.deployment.stages import enter_stage
from maserve.deployment.stock import StockPlugin
from maserve.resource.annotations import HEALTH_GATE_REASON, HEALTH_GATE_SHORT_SINCE
from maserve.testing.builders import a_deployment
from maserve.testing.control_rig import ControlRig
from maserve.wire import v2

OBSERVABILITY = ObservabilityContext(logger=structlog.get_logger())
GRACE_S = 60.0
"""As the rig's gate has it."""


@pytest.fixture
async def live(rig: ControlRig) -> ControlRig:
    """Have m1 served by one replica, though two are wanted."""
    await rig.provide()
    await rig.serve("m1")
    row = ReplicaLoad(replica=ReplicaName("r-0"), running=True, state=LoadState.READY)
    rig.backend.reports["m1"] = LoadReport(model=ModelName("m1"), wanted=2, rows=(row,))
    return rig


@pytest.fixture
def deployment() -> v2.Deployment:
    return a_deployment(desired="m2", candidate="m2", current="m1", placed=["c1"])


async def is_healthy(rig: ControlRig, deployment: v2.Deployment) -> bool:
    """Ask a control plane that has just been started."""
    return await StockPlugin(rig.ports).health_check_gate(OBSERVABILITY, deployment)


async def test_a_replica_that_stays_missing_fails_the_gate_though_the_control_plane_restarts(
    live: ControlRig, deployment: v2.Deployment
) -> None:
    assert await is_healthy(live, deployment)
    live.advance(GRACE_S - 1)
    assert await is_healthy(live, deployment)
    live.advance(1)

    assert not await is_healthy(live, deployment)
    assert deployment.metadata.annotations[HEALTH_GATE_REASON] == (
        "model m1 is not ready in cluster c1: 1/2 replicas ready, 1 running"
    )


async def test_the_grace_begins_anew_once_every_replica_was_seen(
    live: ControlRig, deployment: v2.Deployment
) -> None:
    assert await is_healthy(live, deployment)
    short = live.backend.reports.pop("m1")
    live.advance(GRACE_S / 2)
    assert await is_healthy(live, deployment)
    assert HEALTH_GATE_SHORT_SINCE not in deployment.metadata.annotations
    live.backend.reports["m1"] = short
    assert await is_healthy(live, deployment)
    live.advance(GRACE_S - 1)

    assert await is_healthy(live, deployment)


async def test_an_answer_nobody_could_give_ends_no_grace(
    live: ControlRig, deployment: v2.Deployment
) -> None:
    assert await is_healthy(live, deployment)
    live.backend.fail_reads = Unavailable("away")
    live.advance(GRACE_S)
    assert await is_healthy(live, deployment)
    live.backend.fail_reads = None

    assert not await is_healthy(live, deployment)


@pytest.mark.parametrize("damaged", ["yesterday", "2026-12-03T12:00:00"])
async def test_a_damaged_record_begins_anew(
    live: ControlRig, deployment: v2.Deployment, damaged: str
) -> None:
    deployment.metadata.annotations[HEALTH_GATE_SHORT_SINCE] = damaged

    assert await is_healthy(live, deployment)
    assert deployment.metadata.annotations[HEALTH_GATE_SHORT_SINCE] == (
        live.clock.now().isoformat()
    )


async def test_a_rollout_that_has_ended_leaves_no_record(
    live: ControlRig, deployment: v2.Deployment
) -> None:
    await is_healthy(live, deployment)
    deployment.status.stage = v2.DEPLOYMENT_STAGE_ROLLOUT_FAILED

    enter_stage(deployment)

    assert HEALTH_GATE_SHORT_SINCE not in deployment.metadata.annotations
