"""Modules of somebody's own in the whole control plane: what they put last, or decorate, counts."""

from collections.abc import Sequence

import pytest

from maserve.cmd.wiring import Module
from maserve.deployment import Conditions, Registrar
from maserve.deployment.noop import NoopPlugin
from maserve.endpoints import Endpoint, Provider
from maserve.testing.builders import a_deployment
from maserve.testing.simulation import SERVING, Simulation
from maserve.testing.stories import first_rollout
from maserve.testing.virtually import run_virtually, safe_tap
from maserve.wire import v2


def register_noop(plugins: Registrar) -> None:
    plugins.register_plugin("TARGET_TYPE_INFERENCE_SERVER", "", NoopPlugin())


NOOP = Module(name="noop", invoke=(register_noop,))


async def stage_without_a_server(modules: Sequence[Module]) -> v2.DeploymentStage:
    """Create a Deployment alone; return its stage once it has come to rest."""
    sim = Simulation(modules=modules)

    async def story() -> None:
        await sim.store.create(a_deployment(desired="m1"))
        await sim.clock.sleep(60)

    await sim.run(safe_tap(sim), story)
    (deployment,) = sim.deployments()
    return deployment.status.stage


@pytest.mark.parametrize(
    ("modules", "stage"),
    [
        pytest.param((*SERVING, NOOP), v2.DEPLOYMENT_STAGE_ROLLOUT_COMPLETE, id="last wins"),
        pytest.param((NOOP, *SERVING), v2.DEPLOYMENT_STAGE_VALIDATION, id="the stock one is last"),
    ],
)
def test_plugin_that_is_registered_last_has_the_deployment(
    modules: Sequence[Module], stage: v2.DeploymentStage
) -> None:
    assert run_virtually(stage_without_a_server(modules)) == stage


class Counting:
    """Resolves as another provider does and notes which clusters."""

    def __init__(self, inner: Provider, seen: set[str]) -> None:
        self._inner = inner
        self._seen = seen

    async def resolve(self, target: v2.ClusterTarget) -> Endpoint:
        self._seen.add(target.cluster_id)
        return await self._inner.resolve(target)


async def resolved() -> set[str]:
    seen: set[str] = set()

    def counting(stock: Provider) -> Provider:
        return Counting(stock, seen)

    sim = Simulation(modules=(*SERVING, Module(name="counting", decorate=(counting,))))

    async def story() -> None:
        await first_rollout(sim)

    await sim.run(safe_tap(sim), story)
    return seen


def test_decorated_port_is_what_the_stock_plugin_works_with() -> None:
    assert run_virtually(resolved()) == {"c1", "c2"}


class Faulty(NoopPlugin):
    """Raises what is no error of the project's own, as a library may in an author's code."""

    async def rollout_plugin(self, _deployment: v2.Deployment) -> Conditions:
        raise ConnectionError("no answer from the registry")


async def told_of_a_fault() -> list[tuple[str, str]]:
    def register(plugins: Registrar) -> None:
        plugins.register_plugin("TARGET_TYPE_INFERENCE_SERVER", "", Faulty())

    sim = Simulation(modules=(*SERVING, Module(name="faulty", invoke=(register,))))

    async def story() -> None:
        await sim.store.create(a_deployment(desired="m1"))
        await sim.clock.sleep(60)

    await sim.run(safe_tap(sim), story)
    return [(event.reason, event.message) for event in sim.recorder.events]


def test_fault_of_a_plugin_is_an_event_on_the_object() -> None:
    ((reason, message),) = run_virtually(told_of_a_fault())
    assert reason == "ReconciliationError"
    assert message.startswith("ConnectionError('no answer from the registry'): a fault of")
