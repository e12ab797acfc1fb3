"""One model's trouble stays its own, in virtual time (ADR 0017)."""

import asyncio

from maserve.base.keys import ClusterId, Key
from maserve.testing.builders import a_deployment, a_model, an_inference_server
from maserve.testing.invariants import traffic_rules
from maserve.testing.simulation import Simulation
from maserve.testing.stories import SERVER, ensure
from maserve.testing.virtually import run_virtually, safe_tap
from maserve.wire import v2

C1 = ClusterId("c1")
BYSTANDER, ILL = Key("ns", "bystander"), Key("ns", "ill")


async def two_deployments(sim: Simulation) -> None:
    for model in ("good", "bad"):
        await ensure(sim, a_model(model))
    await ensure(sim, an_inference_server(clusters=("c1",), replicas=2))
    await ensure(sim, a_deployment(BYSTANDER.name, desired="good"))
    await ensure(sim, a_deployment(ILL.name, desired="bad"))
    for key in (BYSTANDER, ILL):
        await sim.until(v2.Deployment, key, _is_complete)


def test_a_model_that_no_replica_can_load_takes_no_other_down() -> None:
    async def story() -> Simulation:
        sim = Simulation()

        async def trouble() -> None:
            await two_deployments(sim)
            sim.world.broken["bad"] = "the weights are gone"
            _kill_all(sim)
            assert not _ready(sim)
            await asyncio.sleep(sim.world.start_s + sim.world.load_s + 1)
            assert len(_ready(sim)) == 2
            assert sim.world.lifted[SERVER, C1] == {"bad"}
            await sim.until(v2.Deployment, ILL, _is_unhealthy)
            del sim.world.broken["bad"]
            _kill_all(sim)
            await asyncio.sleep(sim.world.start_s + sim.world.load_s + 1)
            assert sim.world.lifted[SERVER, C1] == frozenset()
            assert len(_ready(sim)) == 2

        await sim.run(safe_tap(sim), trouble)
        return sim

    sim = run_virtually(story())
    assert len(traffic_rules(sim, SERVER, C1)) == 2


def test_nothing_is_lifted_while_one_replica_still_has_the_model() -> None:
    async def story() -> None:
        sim = Simulation()

        async def trouble() -> None:
            await two_deployments(sim)
            sim.world.broken["bad"] = "the weights are gone"
            sim.world.kill(SERVER, C1, 0)
            await asyncio.sleep(30)
            assert len(_ready(sim)) == 1
            assert not sim.world.lifted[SERVER, C1]

        await sim.run(safe_tap(sim), trouble)

    run_virtually(story())


def _kill_all(sim: Simulation) -> None:
    for index in range(len(sim.world.groups[SERVER, C1])):
        sim.world.kill(SERVER, C1, index)


def _ready(sim: Simulation) -> list[str]:
    sim.world.settle()
    return [row.name for row in sim.world.statuses(SERVER, C1) if row.ready]


def _is_complete(deployment: v2.Deployment | None) -> bool:
    return (
        deployment is not None
        and deployment.status.stage == v2.DEPLOYMENT_STAGE_ROLLOUT_COMPLETE
        and deployment.status.state == v2.DEPLOYMENT_STATE_HEALTHY
    )


def _is_unhealthy(deployment: v2.Deployment | None) -> bool:
    return deployment is not None and deployment.status.state == v2.DEPLOYMENT_STATE_UNHEALTHY
