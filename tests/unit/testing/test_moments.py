"""What a remembered moment of a simulation holds, and what it does not."""

from maserve.base.keys import ClusterId, Key
from maserve.cmd.wiring import Module
from maserve.testing.simulation import SERVING, Simulation
from maserve.testing.virtually import run_virtually

SERVER = Key("ns", "is")


def test_moment_is_untouched_by_what_happens_later() -> None:
    async def history() -> tuple[Simulation, Simulation, float]:
        sim = Simulation()
        await sim.clock.sleep(7.5)
        moment = sim.moment()
        sim.world.scale(SERVER, ClusterId("c1"), 1, "")
        first = await moment.relive()
        first.world.scale(SERVER, ClusterId("c2"), 1, "")
        return first, await moment.relive(), moment.at_s

    first, second, at_s = run_virtually(history())
    assert list(first.world.groups) == [(SERVER, "c2")]
    assert list(second.world.groups) == []
    assert at_s == 7.5


def test_control_planes_of_a_moment_are_made_of_the_same_modules() -> None:
    class Extension:
        def start(self) -> None:
            pass

    sim = Simulation(modules=[*SERVING, Module(name="own", invoke=[Extension().start])])

    async def history() -> Simulation:
        return await sim.moment().relive()

    assert run_virtually(history()).modules is sim.modules
