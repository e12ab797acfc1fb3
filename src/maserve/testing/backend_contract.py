"""What every Backend must do, whatever it runs replicas with.

Subclass `BackendContract`, give it a `world` fixture, and pytest runs the suite on your backend.
"""

# ruff: noqa: S101 - assertions are what a contract is made of

from collections.abc import Awaitable, Callable
from typing import Protocol

import pytest

from maserve.backends import Backend, LoadReport, LoadState, ServerState, find_failed, is_loaded
from maserve.base.keys import Key, ModelName
from maserve.resource.metadata import key_of
from maserve.wire import v2

EAST = v2.ClusterTarget(cluster_id="east")
WEST = v2.ClusterTarget(cluster_id="west")
MODEL = ModelName("m1")


class BackendWorld(Protocol):
    """One backend with what the suite cannot do through the port."""

    @property
    def backend(self) -> Backend:
        """Return the backend, ready to be called; `until` gives it time to work."""
        ...

    async def until(self, holds: Callable[[], Awaitable[bool]]) -> None:
        """Let time pass until it holds. Raises `TimeoutError` when it does not come to hold."""
        ...

    async def want_model(
        self, server: Key, target: v2.ClusterTarget, model: ModelName, *, fails: str = ""
    ) -> None:
        """Make every replica load the model, as its model-sync would; with `fails`, in vain.

        `fails` is the reason that the framework gives.
        """
        ...

    def announced(self) -> list[Key]:
        """Return the server keys that the backend has announced, oldest first."""
        ...


def an_inference_server(
    name: str = "is1", *, replicas: int = 1, cpu: int = 0
) -> v2.InferenceServer:
    """Return a resource as the controller would pass it."""
    server = v2.InferenceServer()
    server.metadata.namespace, server.metadata.name = "default", name
    server.metadata.uid = f"uid-of-{name}"
    server.spec.init_spec.num_instances = replicas
    server.spec.init_spec.resource_spec.cpu = cpu
    server.spec.backend_type = v2.BACKEND_TYPE_TRITON
    return server


async def a_serving(
    world: BackendWorld, server: v2.InferenceServer, target: v2.ClusterTarget = EAST
) -> v2.InferenceServer:
    """Create the server and wait until it serves."""
    await world.backend.create_server(server, target)
    try:
        await world.until(lambda: is_serving(world, server, target))
    except TimeoutError as error:
        status = await world.backend.get_server_status(server, target)
        raise AssertionError(f"the server does not come to serve: {status}") from error
    return server


async def until_reported(
    world: BackendWorld, server: Key, model: ModelName, holds: Callable[[LoadReport], bool]
) -> LoadReport:
    """Wait until the model's report in `EAST` is such; return it."""

    async def is_so() -> bool:
        return holds(await world.backend.get_model_status(server, EAST, model))

    try:
        await world.until(is_so)
    except TimeoutError as error:
        report = await world.backend.get_model_status(server, EAST, model)
        raise AssertionError(f"the load state does not come: {report}") from error
    return await world.backend.get_model_status(server, EAST, model)


async def is_serving(
    world: BackendWorld, server: v2.InferenceServer, target: v2.ClusterTarget = EAST
) -> bool:
    status = await world.backend.get_server_status(server, target)
    return status.state is ServerState.SERVING


class BackendContract:
    """The suite. Every test gets a world of its own."""

    @pytest.fixture
    def world(self) -> BackendWorld:
        raise NotImplementedError("the class that inherits the suite has a fixture `world`")

    async def test_absent_server_is_pending(self, world: BackendWorld) -> None:
        status = await world.backend.get_server_status(an_inference_server(), EAST)

        assert status.state is ServerState.CREATE_PENDING
        assert status.replicas == ()

    async def test_absent_server_is_not_healthy(self, world: BackendWorld) -> None:
        assert not await world.backend.is_healthy(key_of(an_inference_server()), EAST)

    async def test_deleting_an_absent_server_is_success(self, world: BackendWorld) -> None:
        assert await world.backend.delete_server(key_of(an_inference_server()), EAST)

    async def test_nothing_is_loaded_on_an_absent_server(self, world: BackendWorld) -> None:
        report = await world.backend.get_model_status(key_of(an_inference_server()), EAST, MODEL)

        assert (report.wanted, report.rows) == (0, ())
        assert not is_loaded(report)

    async def test_created_server_comes_to_serve(self, world: BackendWorld) -> None:
        server = await a_serving(world, an_inference_server(replicas=2))
        status = await world.backend.get_server_status(server, EAST)

        assert status.up_to_date
        assert [row.ready for row in status.replicas] == [True, True]
        assert await world.backend.is_healthy(key_of(server), EAST)

    async def test_zero_instances_mean_one(self, world: BackendWorld) -> None:
        server = await a_serving(world, an_inference_server(replicas=0))
        status = await world.backend.get_server_status(server, EAST)

        assert len(status.replicas) == 1

    async def test_creating_twice_changes_nothing(self, world: BackendWorld) -> None:
        server = await a_serving(world, an_inference_server())
        before = await world.backend.get_server_status(server, EAST)
        again = await world.backend.create_server(server, EAST)

        assert again.state is ServerState.SERVING
        assert [row.name for row in again.replicas] == [row.name for row in before.replicas]

    async def test_change_shows_until_it_is_applied(self, world: BackendWorld) -> None:
        await a_serving(world, an_inference_server())
        bigger = an_inference_server(replicas=2)
        status = await world.backend.get_server_status(bigger, EAST)

        assert status.state is not ServerState.SERVING
        assert not status.up_to_date

    async def test_server_is_scaled_up_and_down(self, world: BackendWorld) -> None:
        await a_serving(world, an_inference_server())
        two = await a_serving(world, an_inference_server(replicas=2))
        report = await world.backend.get_model_status(key_of(two), EAST, MODEL)
        one = await a_serving(world, an_inference_server(replicas=1))
        after = await world.backend.get_model_status(key_of(one), EAST, MODEL)

        assert (report.wanted, len(report.rows)) == (2, 2)
        assert (after.wanted, len(after.rows)) == (1, 1)

    async def test_changed_resources_come_to_serve(self, world: BackendWorld) -> None:
        """With other replicas where they are enforced, else with the same ones."""
        await a_serving(world, an_inference_server(cpu=1))
        changed = await a_serving(world, an_inference_server(cpu=2))

        assert (await world.backend.get_server_status(changed, EAST)).up_to_date

    async def test_model_nobody_asked_for_is_not_loaded(self, world: BackendWorld) -> None:
        server = await a_serving(world, an_inference_server())
        report = await world.backend.get_model_status(key_of(server), EAST, MODEL)

        assert [row.state for row in report.rows] == [LoadState.LOADING]
        assert not is_loaded(report)

    async def test_model_is_loaded_on_every_replica(self, world: BackendWorld) -> None:
        server = await a_serving(world, an_inference_server(replicas=2))
        await world.want_model(key_of(server), EAST, MODEL)
        report = await until_reported(world, key_of(server), MODEL, is_loaded)

        names = [row.replica for row in report.rows]
        assert names == sorted(set(names))
        assert all(row.running for row in report.rows)

    async def test_failed_load_is_reported_with_its_reason(self, world: BackendWorld) -> None:
        server = await a_serving(world, an_inference_server())
        await world.want_model(key_of(server), EAST, MODEL, fails="no weights")
        report = await until_reported(
            world, key_of(server), MODEL, lambda now: find_failed(now) is not None
        )

        assert "no weights" in report.rows[0].reason
        assert not is_loaded(report)

    async def test_clusters_are_told_apart(self, world: BackendWorld) -> None:
        server = await a_serving(world, an_inference_server(), EAST)
        await world.want_model(key_of(server), EAST, MODEL)
        elsewhere = await world.backend.get_server_status(server, WEST)
        report = await world.backend.get_model_status(key_of(server), WEST, MODEL)

        assert elsewhere.state is ServerState.CREATE_PENDING
        assert report.wanted == 0

    async def test_deleted_server_is_gone_and_can_be_made_again(self, world: BackendWorld) -> None:
        server = await a_serving(world, an_inference_server())
        await world.until(lambda: world.backend.delete_server(key_of(server), EAST))
        status = await world.backend.get_server_status(server, EAST)
        report = await world.backend.get_model_status(key_of(server), EAST, MODEL)

        assert status.state is ServerState.CREATE_PENDING
        assert report.wanted == 0
        assert await world.backend.delete_server(key_of(server), EAST)
        await a_serving(world, server)

    async def test_changes_are_announced(self, world: BackendWorld) -> None:
        server = await a_serving(world, an_inference_server())

        assert key_of(server) in world.announced()
