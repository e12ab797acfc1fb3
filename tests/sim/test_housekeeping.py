"""A model that is live everywhere stays live, whatever housekeeping comes to."""

import pytest

from maserve.base.errors import Denied, Error, Unavailable
from maserve.base.keys import ClusterId, Key
from maserve.conditions import find_condition
from maserve.deployment.stock import RolloutSettings
from maserve.testing.builders import a_deployment, a_model, an_inference_server
from maserve.testing.simulation import Simulation
from maserve.testing.stories import DEPLOYMENT, SERVER, ensure, until_live, want
from maserve.testing.virtually import run_virtually, safe_tap
from maserve.wire import api, v2

pytestmark = pytest.mark.slow

C1, C2 = ClusterId("c1"), ClusterId("c2")
HOUR_S = 3600.0
AWAY, REFUSED = Unavailable("cluster away"), Denied("model list is read-only")


def a_simulation() -> Simulation:
    return Simulation(settings=RolloutSettings(soak_period_s=5.0))


async def apply(sim: Simulation) -> None:
    for model in ("m1", "m2"):
        await ensure(sim, a_model(model))
    await ensure(sim, an_inference_server(clusters=("c1", "c2"), replicas=2))
    await ensure(sim, a_deployment(desired="m1"))


async def until_reason(sim: Simulation, type_: str, reason: str) -> None:
    def is_so(deployment: v2.Deployment | None) -> bool:
        conditions = () if deployment is None else deployment.status.conditions
        found = find_condition(conditions, type_)
        return found is not None and found.reason == reason

    await sim.until(v2.Deployment, DEPLOYMENT, is_so)


def listed(sim: Simulation, cluster: ClusterId) -> list[str]:
    entries = sim.model_config.find_entries(SERVER, cluster) or ()
    return sorted(str(entry.name) for entry in entries)


def stages(sim: Simulation) -> list[str]:
    """Return where the stage went, by the events, oldest first."""
    events = [each.message for each in sim.recorder.events if each.reason == "StageChange"]
    names = [each.rpartition(" ")[2].removeprefix("DEPLOYMENT_STAGE_") for each in events]
    return [name for name in names if name.startswith(("ROLL", "PLACEMENT"))]


@pytest.mark.parametrize("error", [AWAY, REFUSED], ids=["away", "refused"])
def test_an_old_entry_that_cannot_be_removed_takes_no_live_model_down(error: Error) -> None:
    async def history() -> tuple[Simulation, v2.Deployment]:
        sim = a_simulation()
        held: list[v2.Deployment] = []

        async def story() -> None:
            await apply(sim)
            await until_live(sim, "m1")
            await want(sim, "m2")
            await until_reason(sim, "SoakComplete-c2", "Soaking")
            sim.model_config.fail_writes = error
            await sim.clock.sleep(HOUR_S)
            held.extend(sim.deployments())
            sim.model_config.fail_writes = None
            await sim.clock.sleep(60)

        await sim.run(safe_tap(sim), story)
        return sim, held[0]

    sim, held = run_virtually(history())
    assert stages(sim) == ["PLACEMENT", "ROLLOUT_COMPLETE", "PLACEMENT", "ROLLOUT_COMPLETE"]
    condition = find_condition(held.status.conditions, "ModelCleanupComplete-c1")
    assert condition is not None
    assert condition.status == api.CONDITION_STATUS_UNKNOWN
    assert str(error) in condition.message
    told = [each for each in sim.recorder.events if each.reason == "HousekeepingDelayed"]
    assert [each.type for each in told] == ["Warning"]
    assert str(error) in told[0].message


def test_a_cluster_that_is_away_after_all_was_switched_takes_no_live_model_down() -> None:
    async def history() -> Simulation:
        sim = a_simulation()

        async def story() -> None:
            await apply(sim)
            await until_live(sim, "m1")
            await want(sim, "m2")
            await until_reason(sim, "SoakComplete-c2", "Soaking")
            sim.model_config.fail_writes = AWAY
            await sim.clock.sleep(30)
            sim.model_config.fail_writes = None
            sim.model_config.broken[SERVER, C2] = AWAY
            await sim.clock.sleep(HOUR_S)
            sim.model_config.broken.clear()
            await sim.clock.sleep(60)

        await sim.run(safe_tap(sim), story)
        return sim

    assert stages(run_virtually(history())) == [
        "PLACEMENT",
        "ROLLOUT_COMPLETE",
        "PLACEMENT",
        "ROLLOUT_COMPLETE",
    ]


@pytest.mark.parametrize("error", [AWAY, REFUSED], ids=["away", "refused"])
def test_a_gateway_that_takes_no_rule_takes_no_live_model_down(error: Error) -> None:
    async def history() -> Simulation:
        sim = a_simulation()

        async def story() -> None:
            await apply(sim)
            await until_reason(sim, "SoakComplete-c2", "Soaking")
            sim.routes.fail_writes = error
            await sim.clock.sleep(HOUR_S)
            sim.routes.fail_writes = None
            await sim.clock.sleep(60)

        await sim.run(safe_tap(sim), story)
        return sim

    assert stages(run_virtually(history())) == ["PLACEMENT", "ROLLOUT_COMPLETE"]


def test_a_rollback_after_half_of_the_cleanup_loads_everywhere_before_a_route_goes_back() -> None:
    async def history() -> tuple[Simulation, list[list[str]]]:
        sim = a_simulation()
        seen: list[list[str]] = []
        announce = sim.model_config.changed

        def refuse_after_the_first_removal(server: Key, cluster: ClusterId) -> None:
            announce(server, cluster)
            if listed(sim, C1) == ["m2"]:
                sim.model_config.fail_writes = AWAY

        async def story() -> None:
            await apply(sim)
            await ensure(sim, a_model("m3"))
            await until_live(sim, "m1")
            await want(sim, "m2")
            sim.model_config.changed = refuse_after_the_first_removal
            await sim.until(v2.Deployment, DEPLOYMENT, lambda _: listed(sim, C1) == ["m2"])
            await sim.clock.sleep(30)
            sim.model_config.changed = announce
            seen.extend((listed(sim, C1), listed(sim, C2)))
            sim.model_config.fail_writes = None
            await want(sim, "m3")
            await until_live(sim, "m3")

        await sim.run(safe_tap(sim), story)
        return sim, seen

    sim, seen = run_virtually(history())
    assert seen == [["m2"], ["m1", "m2"]]
    assert stages(sim)[2:] == [
        "PLACEMENT",
        "ROLLBACK_IN_PROGRESS",
        "ROLLBACK_COMPLETE",
        "PLACEMENT",
        "ROLLOUT_COMPLETE",
    ]
