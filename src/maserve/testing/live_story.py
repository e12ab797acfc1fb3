"""What a user does with a live control plane, said shortly: apply, roll, wait, look, delete."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from maserve.base.clock import SystemClock
from maserve.base.errors import Unavailable
from maserve.base.keys import Key
from maserve.client import Client
from maserve.conditions import find_condition
from maserve.host import HttpClient
from maserve.resource.names import discovery_path
from maserve.testing.live import PROGRAM, LiveControlPlane, live_control_plane
from maserve.testing.load_process import LoadProcess, load_on
from maserve.testing.resources import a_deployment, a_model, an_inference_server
from maserve.testing.tiny_models import REQUEST, write_model
from maserve.wire import api, ext, v2

NAMESPACE = "story"
SERVER = Key(NAMESPACE, "server")
DEPLOYMENT = Key(NAMESPACE, "shop")

RATE_PER_S = 120.0
WAIT_S = 60.0

Met = Callable[[v2.Deployment], bool]


def fast_settings(*, soak: str = "0s", startup_failures: int = 60) -> dict[str, object]:
    """Return the settings that make a rollout short without leaving a step out.

    Another number of `startup_failures` changes nothing but the replicas' template.
    """
    probes = {"startup": {"failureThreshold": startup_failures}}
    triton = {"autoCompleteConfig": False, "drain": {"preStopSeconds": 1}, "probes": probes}
    return {
        "inferenceServer": {"triton": triton},
        "deployment": {"rollout": {"soakPeriod": soak}},
        "modelSync": {"unloadGrace": "1s"},
    }


@dataclass(frozen=True, slots=True)
class Story:
    """One server with one Deployment on a live control plane."""

    plane: LiveControlPlane
    folder: Path

    @property
    def client(self) -> Client:
        return self.plane.client

    async def model(
        self,
        name: str,
        *,
        load_s: float = 0.0,
        fails: str = "",
        flag: Path | None = None,
        fatal: Path | None = None,
    ) -> None:
        """Write a tiny model and declare it."""
        resource = a_model(name, namespace=NAMESPACE)
        del resource.spec.deployable_artifact_uri[:]
        uri = write_model(
            self.folder / "models", name, load_s=load_s, fails=fails, flag=flag, fatal=fatal
        )
        resource.spec.deployable_artifact_uri.append(uri)
        await self.client.create(resource)

    async def declare_server(
        self,
        *,
        clusters: Sequence[str] = ("c1", "c2"),
        replicas: int = 2,
        cpu: int = 0,
        name: str = SERVER.name,
    ) -> v2.InferenceServer:
        """Declare the server, or change it; or another one, by its name."""
        resource = an_inference_server(name, namespace=NAMESPACE, clusters=tuple(clusters))
        resource.spec.init_spec.num_instances = replicas
        resource.spec.init_spec.resource_spec.cpu = cpu
        applied, _ = await self.client.apply(resource)
        return applied

    async def server(
        self,
        *,
        clusters: Sequence[str] = ("c1", "c2"),
        replicas: int = 2,
        cpu: int = 0,
        name: str = SERVER.name,
    ) -> None:
        """Declare the server, or change it, and wait until it serves just so."""
        applied = await self.declare_server(
            clusters=clusters, replicas=replicas, cpu=cpu, name=name
        )
        generation, key = applied.metadata.generation, Key(NAMESPACE, name)
        async with asyncio.timeout(WAIT_S):
            await self.client.wait_until(
                v2.InferenceServer, key, lambda now: _serves(now, generation)
            )

    async def ask(
        self, model: str, *, deployment: str = DEPLOYMENT.name, server: str = SERVER.name
    ) -> None:
        """Ask for a model, on another server if one is named."""
        resource = a_deployment(
            deployment, namespace=NAMESPACE, desired=model, inference_server=server
        )
        resource.spec.desired_revision.namespace = NAMESPACE
        await self.client.apply(resource)

    async def roll(self, model: str) -> v2.Deployment:
        """Ask for a model and wait until the rollout of it is complete."""
        await self.ask(model)
        return await self.until(lambda now: is_complete(now, model))

    async def until(self, met: Met, *, deployment: str = DEPLOYMENT.name) -> v2.Deployment:
        """Return the Deployment as soon as it is as wanted. Raises `TimeoutError` saying how it is.

        Through restarts of the control plane too.
        """
        key = Key(NAMESPACE, deployment)
        try:
            async with asyncio.timeout(WAIT_S):
                found = await self.client.wait_until(
                    v2.Deployment, key, lambda now: now is not None and met(now)
                )
        except TimeoutError as error:
            now = await self.client.find(v2.Deployment, key)
            raise TimeoutError(f"not in time: {now.status if now else 'no object'}") from error
        if found is None:
            raise RuntimeError("a wait for an object ended without one")
        return found

    async def delete(self) -> None:
        """Delete the Deployment and wait until it is gone."""
        await self.client.delete(v2.Deployment, DEPLOYMENT)
        await self.gone(v2.Deployment, DEPLOYMENT)

    async def delete_server(self) -> None:
        await self.client.delete(v2.InferenceServer, SERVER)
        await self.gone(v2.InferenceServer, SERVER)

    async def gone(self, kind: type[v2.Deployment] | type[v2.InferenceServer], key: Key) -> None:
        """Wait until the object is gone."""
        async with asyncio.timeout(WAIT_S):
            await self.client.wait_until(kind, key, lambda now: now is None)

    async def view(self) -> ext.DescribeResponse:
        """Describe the Deployment."""
        return await self.client.describe(v2.Deployment, DEPLOYMENT)

    async def server_view(self) -> ext.DescribeResponse:
        return await self.client.describe(v2.InferenceServer, SERVER)

    async def loaded(self) -> dict[str, tuple[str, ...]]:
        """Return what each engine itself says it has ready, by replica."""
        view = await self.server_view()
        replicas = [one for cluster in view.clusters for one in cluster.replicas]
        async with HttpClient() as http:
            return {one.name: await _ready_models(http, one.address) for one in replicas}

    async def data_plane_of(self, *, engines: int) -> dict[str, int]:
        """Return the data plane's pids once it has that many engines: draining ones are gone."""
        async with asyncio.timeout(WAIT_S):
            while len(pids := self.plane.data_plane_pids()) != engines + 1:
                await SystemClock().sleep(0.05)
        return pids

    async def replaced(self, before: Mapping[str, int]) -> None:
        """Wait until as many other engines as in `before` have taken their places."""
        pids: Mapping[str, int] = before
        async with asyncio.timeout(WAIT_S):
            while _engines(pids) & _engines(before) or len(pids) != len(before):
                await SystemClock().sleep(0.05)
                pids = self.plane.data_plane_pids()

    async def everywhere(self, model: str, *, clusters: int) -> None:
        """Wait until that many clusters send the Deployment's traffic to the model."""
        async with asyncio.timeout(WAIT_S):
            while len(await self._routed(model)) != clusters:
                await SystemClock().sleep(0.05)

    async def _routed(self, model: str) -> list[str]:
        view = await self.view()
        ends = f"/{model}"
        return [r.cluster_id for r in view.routes if r.live and r.rewrite_path.endswith(ends)]

    async def serves_again(self, dead_pid: int) -> None:
        """Wait until another process has taken the place of a dead one and all admit traffic.

        A replica is ready a moment before the data plane has acknowledged it; only a cluster that
        is SERVING has both.
        """
        async with asyncio.timeout(WAIT_S):
            while True:
                view = await self.server_view()
                replicas = [one for cluster in view.clusters for one in cluster.replicas]
                is_back = bool(replicas) and all(
                    one.ready and one.pid not in (0, dead_pid) for one in replicas
                )
                if is_back and all(cluster.state == "SERVING" for cluster in view.clusters):
                    return
                await SystemClock().sleep(0.05)

    async def only_loaded(self, *models: str) -> None:
        """Wait until every replica has just these models: the old ones are really gone."""
        found: dict[str, tuple[str, ...]] = {}
        try:
            async with asyncio.timeout(WAIT_S):
                while set((found := await self.loaded()).values()) != {models}:
                    await SystemClock().sleep(0.05)
        except TimeoutError as error:
            raise TimeoutError(f"not only {models} is loaded in time: {found}") from error

    @property
    def url(self) -> str:
        return self.url_on(SERVER.name)

    def url_on(self, server: str) -> str:
        """Return where the Deployment's model answers once it is on that server."""
        path = discovery_path(server, DEPLOYMENT.name)
        return f"http://{self.plane.at.gateway}{path}/infer"

    def load(self, *, rate_per_s: float = RATE_PER_S) -> AbstractAsyncContextManager[LoadProcess]:
        """Put the Deployment under constant load while the context lasts."""
        body = self.folder / "request.json"
        body.write_text(REQUEST)
        return load_on(self.url, body, rate_per_s=rate_per_s)


@asynccontextmanager
async def a_story(
    folder: Path,
    *,
    settings: Mapping[str, object] | None = None,
    program: Sequence[str] = PROGRAM,
) -> AsyncIterator[Story]:
    """Run a control plane for one story."""
    async with live_control_plane(folder, settings or fast_settings(), program) as plane:
        yield Story(plane, folder)


def is_complete(deployment: v2.Deployment, model: str) -> bool:
    """Tell whether a rollout of that model is complete and nothing else is wanted."""
    status = deployment.status
    return (
        status.stage == v2.DEPLOYMENT_STAGE_ROLLOUT_COMPLETE
        and status.current_revision.name == model
        and status.candidate_revision.name == model
    )


def is_rolled_back(deployment: v2.Deployment, model: str) -> bool:
    """Tell whether a rollout was undone and that model is the current one."""
    status = deployment.status
    is_undone = status.stage == v2.DEPLOYMENT_STAGE_ROLLBACK_COMPLETE
    return is_undone and status.current_revision.name == model


def is_true(deployment: v2.Deployment, condition: str) -> bool:
    found = find_condition(deployment.status.conditions, condition)
    return found is not None and found.status == api.CONDITION_STATUS_TRUE


def is_working_on(deployment: v2.Deployment, condition: str, candidate: str) -> bool:
    """Tell whether that condition of the rollout of `candidate` is the one being worked on."""
    if deployment.status.candidate_revision.name != candidate:
        return False
    unmet = [c for c in deployment.status.conditions if c.status != api.CONDITION_STATUS_TRUE]
    return bool(unmet) and unmet[0].type == condition


def _engines(pids: Mapping[str, int]) -> set[int]:
    return {pid for name, pid in pids.items() if name != "envoy"}


async def _ready_models(http: HttpClient, address: str) -> tuple[str, ...]:
    url = f"http://{address}/v2/repository/index"
    try:
        answer = await http.request("POST", url, body=b"{}", timeout_s=5)
    except Unavailable as error:  # a draining one ends before its row goes
        return (str(error),)
    return tuple(sorted(row["name"] for row in answer.json() if row.get("state") == "READY"))


def _serves(server: v2.InferenceServer | None, generation: int) -> bool:
    if server is None or server.status.observed_generation < generation:
        return False
    return server.status.state == v2.INFERENCE_SERVER_STATE_SERVING
