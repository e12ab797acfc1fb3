"""The embedded Triton backend in a temporary folder, with a stand-in for model-sync.

The engine is a parameter: real Triton, or `FakeEngine` where only processes matter.
"""

import asyncio
import json
import random
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from maserve.backends.triton import DrainSettings, TritonSettings
from maserve.backends.triton.local import (
    Command,
    Engine,
    LocalTritonBackend,
    LocalTritonParts,
    ModelSyncLaunch,
)
from maserve.backends.types import ServerState, is_loaded
from maserve.base.clock import SystemClock
from maserve.base.errors import Unavailable
from maserve.base.keys import ClusterId, Key, ModelName
from maserve.base.signals import Signal
from maserve.base.tasks import run_until
from maserve.host import DataFolder, HttpClient, PortBook, Supervisor, Worker
from maserve.testing.leftovers import kill_programs, sweep
from maserve.wire import v2

CLUSTER = ClusterId("c1")
KEY = Key("default", "is1")
TARGET = v2.ClusterTarget(cluster_id=CLUSTER)

MODEL = """
import numpy as np
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        ins = [pb.get_input_tensor_by_name(one, "IN").as_numpy() for one in requests]
        return [pb.InferenceResponse([pb.Tensor("OUT", one * 2)]) for one in ins]
"""
CONFIG = """
name: "%s"
backend: "python"
max_batch_size: 8
input [{name: "IN" data_type: TYPE_FP32 dims: [2]}]
output [{name: "OUT" data_type: TYPE_FP32 dims: [2]}]
"""

# Loads each model of the config, then lists it as required: what model-sync does, in twenty lines.
MODEL_SYNC = """
import json, os, pathlib, sys, time, urllib.request
config, repository, url, readiness = map(str, sys.argv[1:5])
MODEL, CONFIG = json.loads(os.environ["STAND_IN"])
loaded = set()
def write(names):
    pathlib.Path(readiness + ".tmp").write_text(json.dumps({"required": sorted(names)}))
    os.replace(readiness + ".tmp", readiness)
def post(path):
    request = urllib.request.Request(url + path, data=b"{}", method="POST")
    return urllib.request.urlopen(request, timeout=60).read()
def one_pass():
    rows = json.loads(pathlib.Path(config).read_text()) if os.path.exists(config) else []
    index = json.loads(post("/v2/repository/index"))
    loaded.intersection_update(row["name"] for row in index if row.get("state") == "READY")
    for row in rows:
        name = row["name"]
        if name in loaded:
            continue
        folder = pathlib.Path(repository, name, "1")
        folder.mkdir(parents=True, exist_ok=True)
        fails = row.get("fails")
        (folder / "model.py").write_text(f"raise RuntimeError({fails!r})" if fails else MODEL)
        if fails:
            (folder.parent / "fails").write_text(fails)
        (folder.parent / "config.pbtxt").write_text(CONFIG % name)
        try:
            post(f"/v2/repository/models/{name}/load")
            loaded.add(name)
        except urllib.error.HTTPError:
            pass
    write([row["name"] for row in rows if row["name"] in loaded])
while True:
    try:
        one_pass()
    except (OSError, ValueError):
        pass
    time.sleep(0.05)
"""


@dataclass
class RecordingEndpoints:
    """Keeps the order of what the data plane was told, and what it should send traffic to now.

    Raises each of `failures` once, first one first.
    """

    told: list[tuple[tuple[str, int], ...]] = field(default_factory=list)
    failures: list[Exception] = field(default_factory=list)
    now: dict[tuple[str, str, str], tuple[tuple[str, int], ...]] = field(default_factory=dict)

    async def set_endpoints(
        self,
        cluster: ClusterId,
        namespace: str,
        service: str,
        addresses: Sequence[tuple[str, int]],
    ) -> None:
        if self.failures:
            raise self.failures.pop(0)
        self.told.append(tuple(addresses))
        self.now[cluster, namespace, service] = tuple(addresses)

    async def remove_service(self, cluster: ClusterId, namespace: str, service: str) -> None:
        self.now.pop((cluster, namespace, service), None)

    def ports(self) -> list[int]:
        return [port for addresses in self.now.values() for _, port in addresses]


@dataclass
class Stage:
    """What a test drives: the backend, and what it can be looked at through."""

    backend: LocalTritonBackend
    endpoints: RecordingEndpoints
    supervisor: Supervisor
    folder: DataFolder
    announced: list[Key]

    def want_models(self, *names: str, broken: str = "") -> None:
        """Write the model config; the model named `broken` will fail to load."""
        path = self.folder.model_config(CLUSTER, KEY)
        path.parent.mkdir(parents=True, exist_ok=True)
        fails = {broken: "weights are missing"}
        rows = [{"name": name, "fails": fails.get(name, "")} for name in names]
        path.write_text(json.dumps(rows))
        self.backend.config_changed(KEY, CLUSTER)

    def pids(self) -> dict[str, int]:
        return {process.name: process.pid for process in self.supervisor.list_running()}

    def files(self) -> list[str]:
        clusters = self.folder.clusters
        return sorted(str(path.relative_to(clusters)) for path in clusters.rglob("*"))

    async def predict(self, port: int, model: str) -> list[float]:
        """Return the answer to [1, 2]. Closes its connection: an open one delays a drain."""
        tensor = {"name": "IN", "shape": [1, 2], "datatype": "FP32", "data": [1, 2]}
        url = f"http://127.0.0.1:{port}/v2/models/{model}/infer"
        body = json.dumps({"inputs": [tensor]}).encode()
        async with HttpClient() as http:
            answer = await http.request("POST", url, body=body, timeout_s=5)
        if answer.status != 200:
            raise Unavailable(answer.text())
        data: list[float] = answer.json()["outputs"][0]["data"]
        return data

    async def state(self, server: v2.InferenceServer) -> str:
        return (await self.backend.get_server_status(server, TARGET)).state

    async def until_serving(self, server: v2.InferenceServer) -> None:
        async def serves() -> bool:
            return await self.state(server) == ServerState.SERVING

        await until(serves)

    async def until_deleted(self) -> None:
        await until(lambda: self.backend.delete_server(KEY, TARGET))

    async def until_loaded(self, model: str) -> None:
        async def loaded() -> bool:
            return is_loaded(await self.backend.get_model_status(KEY, TARGET, ModelName(model)))

        await until(loaded)


def kill_leftovers(path: Path) -> None:
    """Kill every program that a test with this data folder has left running; sweep after it."""
    kill_programs(DataFolder(path))
    sweep(DataFolder(path))


async def until(holds: Callable[[], Awaitable[bool]], timeout_s: float = 20) -> None:
    """Return once it holds. Raises `TimeoutError`."""
    async with asyncio.timeout(timeout_s):
        while not await holds():  # noqa: ASYNC110 - the world raises no event
            await asyncio.sleep(0.02)


def a_server(replicas: int, *, uid: str = "u1") -> v2.InferenceServer:
    server = v2.InferenceServer()
    server.metadata.namespace, server.metadata.name = KEY.namespace, KEY.name
    server.metadata.uid = uid
    server.spec.init_spec.num_instances = replicas
    return server


def fast_settings(pre_stop_s: float = 0.2) -> TritonSettings:
    return TritonSettings(
        drain=DrainSettings(pre_stop_s=pre_stop_s, exit_timeout_s=5), auto_complete_config=False
    )


def stand_in_model_sync(
    script: Path, more_env: Mapping[str, str]
) -> Callable[[ModelSyncLaunch], Command]:
    script.write_text(MODEL_SYNC)
    env = {"STAND_IN": json.dumps([MODEL, CONFIG]), **more_env}

    def build(launch: ModelSyncLaunch) -> Command:
        paths = (launch.config, launch.repository, launch.triton_url, launch.readiness)
        argv = (sys.executable, "-I", "-S", str(script), *(str(path) for path in paths))
        return Command(argv=argv, env=env)

    return build


@asynccontextmanager
async def a_stage(
    path: Path,
    settings: TritonSettings,
    engine: Engine,
    *,
    sync_env: Mapping[str, str] | None = None,
) -> AsyncIterator[Stage]:
    """Run the backend; leaving cancels it, which leaves the processes running."""
    folder, clock, announced = DataFolder(path), SystemClock(), list[Key]()
    folder.path.mkdir(parents=True, exist_ok=True)
    changed, endpoints, files = Signal[Key](), RecordingEndpoints(), Worker("files")
    changed.subscribe(announced.append)
    async with Supervisor(folder.processes, clock=clock) as supervisor:
        backend = LocalTritonBackend(
            LocalTritonParts(
                supervisor=supervisor,
                folder=folder,
                ports=PortBook(folder.ports_file, rng=random.Random(str(path))),  # noqa: S311 - not a secret
                clock=clock,
                settings=settings,
                engine=engine,
                modelsync=stand_in_model_sync(path / "model_sync.py", sync_env or {}),
                endpoints=endpoints,
                changed=changed,
                files=files,
            )
        )
        stage = Stage(
            backend=backend,
            endpoints=endpoints,
            supervisor=supervisor,
            folder=folder,
            announced=announced,
        )
        async with running(backend):
            yield stage
    files.close()


@asynccontextmanager
async def running(backend: LocalTritonBackend) -> AsyncIterator[None]:
    """Run the backend beside the body, whose error it raises as it is."""
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(run_until(stop, backend.run()))
        try:
            yield
        finally:
            stop.set()
            await task
