"""A soak counts what was seen to be well, and no cluster begins while an earlier one is ill."""

import pytest

from maserve.base.errors import Unavailable
from maserve.base.keys import ClusterId
from maserve.conditions import TRUE, find_condition
from maserve.deployment.stock import RolloutSettings
from maserve.testing.builders import a_deployment, a_model, an_inference_server
from maserve.testing.simulation import Simulation
from maserve.testing.stories import DEPLOYMENT, SERVER, ensure, until_live, until_stage, want
from maserve.testing.virtually import run_virtually, safe_tap
from maserve.wire import api, v2

pytestmark = pytest.mark.slow

C1, C2 = ClusterId("c1"), ClusterId("c2")
ROLLED_BACK = v2.DEPLOYMENT_STAGE_ROLLBACK_COMPLETE
SOAK_S = 100.0


def a_simulation(*, soak_s: float = SOAK_S) -> Simulation:
    return Simulation(settings=RolloutSettings(soak_period_s=soak_s))


async def apply(sim: Simulation, *, blast: bool = False) -> None:
    """Apply models, server and Deployment at once."""
    for model in ("m1", "m2"):
        await ensure(sim, a_model(model))
    await ensure(sim, an_inference_server(clusters=("c1", "c2"), replicas=2))
    deployment = a_deployment(desired="m1")
    deployment.spec.strategy.blast.with_rollback_trigger = False
    if not blast:
        deployment.spec.ClearField("strategy")
    await ensure(sim, deployment)


async def until_condition(sim: Simulation, type_: str, reason: str = "") -> api.Condition:
    """Return a condition once it is TRUE, or has the reason."""

    def found(deployment: v2.Deployment | None) -> api.Condition | None:
        conditions = () if deployment is None else deployment.status.conditions
        condition = find_condition(conditions, type_)
        is_so = condition is not None and (
            condition.reason == reason if reason else condition.status == TRUE
        )
        return condition if is_so else None

    condition = found(await sim.until(v2.Deployment, DEPLOYMENT, lambda d: found(d) is not None))
    assert condition is not None
    return condition


def kill_all(sim: Simulation, cluster: ClusterId, *, for_s: float) -> None:
    """Kill every replica of a cluster; each comes back empty after that time."""
    usual, sim.world.start_s = sim.world.start_s, for_s
    for index in range(2):
        sim.world.kill(SERVER, cluster, index)
    sim.world.start_s = usual


def listed(sim: Simulation, cluster: ClusterId) -> list[str]:
    return [str(entry.name) for entry in sim.model_config.find_entries(SERVER, cluster) or ()]


def test_a_soak_stands_still_while_the_cluster_is_down_and_then_starts_over() -> None:
    async def history() -> tuple[list[str], float]:
        sim = a_simulation()

        async def story() -> None:
            await apply(sim)
            await until_condition(sim, "SoakComplete-c1", "Soaking")
            await sim.clock.sleep(SOAK_S / 2)
            kill_all(sim, C1, for_s=300)
            await sim.clock.sleep(290)
            begun.extend(listed(sim, C2))
            await until_condition(sim, "SoakComplete-c1", "Soaking")
            back_s = sim.clock.monotonic()
            await sim.until(v2.Deployment, DEPLOYMENT, lambda _: listed(sim, C2) != [])
            taken.append(sim.clock.monotonic() - back_s)
            await until_live(sim, "m1")

        begun: list[str] = []
        taken: list[float] = []
        await sim.run(safe_tap(sim), story)
        return begun, taken[0]

    begun, taken_s = run_virtually(history())
    assert begun == [], "c2 began while every replica of c1 was dead"
    assert SOAK_S <= taken_s < SOAK_S + 5


def test_a_first_rollout_whose_cluster_stays_down_in_its_soak_fails_and_says_why() -> None:
    async def history() -> tuple[Simulation, float]:
        sim = a_simulation()

        async def story() -> None:
            await apply(sim)
            await until_condition(sim, "SoakComplete-c1", "Soaking")
            kill_all(sim, C1, for_s=100_000)
            killed_s = sim.clock.monotonic()
            await until_stage(sim, ROLLED_BACK)
            taken.append(sim.clock.monotonic() - killed_s)

        taken: list[float] = []
        await sim.run(safe_tap(sim), story)
        return sim, taken[0]

    sim, taken_s = run_virtually(history())
    (deployment,) = sim.deployments()
    message = deployment.status.message
    begun = [call for call in sim.model_config.calls if call[0] == "add_model_to_config"]
    assert [call for call in begun if "c2" in call] == [], "c2 began"
    assert "SoakComplete-c1: HealthGateNotPassing: model m1 is not ready in cluster c1" in message
    assert "still failing after 15m" in message
    assert 900 <= taken_s < 915


@pytest.mark.parametrize("blast", [False, True], ids=["rolling", "blast"])
def test_no_cluster_begins_while_an_earlier_one_does_not_serve_without_a_soak_too(
    blast: bool,
) -> None:
    async def history() -> list[str]:
        sim = a_simulation(soak_s=0)

        async def story() -> None:
            sim.world.slow["m1"] = 3.0
            await apply(sim, blast=blast)
            sim.model_config.broken[SERVER, C2] = Unavailable("c2 is away")
            await until_condition(sim, "TrafficRoutingConfigured-c1")
            kill_all(sim, C1, for_s=300)
            sim.model_config.broken.clear()
            await sim.clock.sleep(290)
            begun.extend(listed(sim, C2))
            await until_live(sim, "m1")

        begun: list[str] = []
        await sim.run(safe_tap(sim), story)
        return begun

    assert run_virtually(history()) == [], "c2 began while every replica of c1 was dead"


def test_a_gate_that_cannot_be_answered_lets_no_soak_go_on() -> None:
    async def history() -> list[str]:
        sim = a_simulation()

        async def story() -> None:
            await apply(sim)
            await until_condition(sim, "SoakComplete-c1", "Soaking")
            sim.backend.fail_reads = Unavailable("load state cannot be read")
            await sim.clock.sleep(5 * SOAK_S)
            begun.extend(c.type for c in sim.deployments()[0].status.conditions if c.status == TRUE)
            sim.backend.fail_reads = None
            await until_live(sim, "m1")

        begun: list[str] = []
        await sim.run(safe_tap(sim), story)
        return begun

    assert "SoakComplete-c1" not in run_virtually(history()), "nobody could tell how c1 is"


def test_time_in_which_nobody_looked_is_not_soaked() -> None:
    async def history() -> float:
        sim = a_simulation()

        async def begin() -> None:
            await apply(sim)
            await until_condition(sim, "SoakComplete-c1", "Soaking")
            await sim.clock.sleep(SOAK_S / 2)

        async def go_on() -> None:
            await sim.until(v2.Deployment, DEPLOYMENT, lambda _: listed(sim, C2) != [])

        await sim.run(safe_tap(sim), begin)
        await sim.clock.sleep(3600)
        back_s = sim.clock.monotonic()
        await sim.run(safe_tap(sim), go_on)
        return sim.clock.monotonic() - back_s

    assert SOAK_S / 2 <= run_virtually(history()) < SOAK_S / 2 + 15


def test_a_soak_with_a_previous_model_is_rolled_back_as_soon_as_the_gate_fails() -> None:
    async def history() -> float:
        sim = a_simulation()

        async def story() -> None:
            await apply(sim)
            await until_live(sim, "m1")
            await want(sim, "m2")
            await until_condition(sim, "SoakComplete-c1", "Soaking")
            kill_all(sim, C1, for_s=60)
            killed_s = sim.clock.monotonic()
            await until_stage(sim, v2.DEPLOYMENT_STAGE_ROLLBACK_IN_PROGRESS)
            taken.append(sim.clock.monotonic() - killed_s)

        taken: list[float] = []
        await sim.run(safe_tap(sim), story)
        return taken[0]

    assert run_virtually(history()) < 11
