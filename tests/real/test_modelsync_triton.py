"""Model-sync beside a real Triton: what a link, a swap, a stand-in and a new engine do there."""

import asyncio
import json
import logging
import os
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import boto3  # type: ignore[import-untyped]  # has no stubs
import pytest
from moto.server import ThreadedMotoServer

from maserve.artifacts import Artifacts, CancelableWorker, StorageSettings
from maserve.backends.triton.local import TritonWheel, this_interpreter
from maserve.backends.triton.local.engine import EngineLaunch
from maserve.base.clock import SystemClock
from maserve.base.tasks import run_until
from maserve.cmd.engineload import GrpcLoad
from maserve.host import HttpClient, remove_shared_memory
from maserve.modelconfig.types import Entry, render_entries
from maserve.modelsync import ModelSync, SyncSettings, TritonEngine
from maserve.testing.modelsync_rig import a_rig, an_entry
from maserve.testing.triton_stage import fast_settings

# Real engines on two busy cores; a load takes up to two seconds there.
pytestmark = [pytest.mark.real, pytest.mark.timeout(60)]

MODEL = """
import numpy as np
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        return [pb.InferenceResponse([pb.Tensor("OUT", np.array([%s], np.float32))])
                for _ in requests]
"""
CONFIG = """
backend: "python"
input [{name: "IN" data_type: TYPE_FP32 dims: [1]}]
output [{name: "OUT" data_type: TYPE_FP32 dims: [1]}]
"""
REQUEST = {"inputs": [{"name": "IN", "datatype": "FP32", "shape": [1], "data": [0]}]}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> TritonWheel:
    folder = tmp_path_factory.mktemp("engines")
    return TritonWheel(folder, fast_settings(), interpreter=this_interpreter())


def a_model(folder: Path, answer: str) -> str:
    """Write a model that always answers the number; returns its URI."""
    (folder / "1").mkdir(parents=True)
    (folder / "1" / "model.py").write_text(MODEL % answer)
    (folder / "config.pbtxt").write_text(CONFIG)
    return folder.as_uri()


@dataclass(slots=True)
class Replica:
    """A real engine's place: start and stop it, ask it."""

    wheel: TritonWheel
    settings: SyncSettings
    ports: tuple[int, int, int]
    http: HttpClient
    process: asyncio.subprocess.Process | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.ports[0]}"

    @property
    def shm_prefix(self) -> str:
        return f"maserve-test-{self.ports[0]}-"

    @property
    def grpc(self) -> str:
        return f"127.0.0.1:{self.ports[1]}"

    async def start(self) -> None:
        await self.wheel.prepare()
        command = self.wheel.command(
            EngineLaunch(
                http_port=self.ports[0],
                grpc_port=self.ports[1],
                metrics_port=self.ports[2],
                repository=self.settings.repository,
                shm_prefix=self.shm_prefix,
            )
        )
        log = (self.settings.repository.parent / "engine.log").open("ab")
        self.process = await asyncio.create_subprocess_exec(
            *command.argv, env=dict(command.env), stdout=log, stderr=log
        )
        log.close()

    async def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            await self.process.wait()
            remove_shared_memory(self.shm_prefix)

    def set_list(self, *entries: Entry) -> None:
        path = self.settings.model_config
        path.with_name("new").write_text(render_entries(entries))
        path.with_name("new").replace(path)

    def required(self) -> object:
        path = self.settings.readiness_file
        return json.loads(path.read_text())["required"] if path.exists() else None

    def status(self, model: str) -> Mapping[str, object]:
        path = self.settings.status_file
        models = json.loads(path.read_text())["models"] if path.exists() else {}
        row: Mapping[str, object] = models.get(model, {})
        return row

    async def predict(self, model: str) -> float:
        url, body = f"{self.url}/v2/models/{model}/infer", json.dumps(REQUEST).encode()
        answer = await self.http.request("POST", url, timeout_s=5, body=body)
        assert answer.status == 200, answer.text()
        return float(answer.json()["outputs"][0]["data"][0])

    async def reason(self, model: str) -> str:
        url = f"{self.url}/v2/repository/index"
        rows = (await self.http.request("POST", url, timeout_s=5, body=b"{}")).json()
        return next((str(row.get("reason", "")) for row in rows if row["name"] == model), "")

    @asynccontextmanager
    async def synced(self) -> AsyncIterator[None]:
        """Run model-sync around the block."""
        stop = asyncio.Event()
        async with (
            Artifacts(StorageSettings()) as source,
            CancelableWorker("test") as worker,
            asyncio.TaskGroup() as group,
        ):
            load = GrpcLoad(self.grpc, timeout_s=30)
            engine = TritonEngine(self.http, self.url, load=load)
            sync = ModelSync(
                self.settings, clock=SystemClock(), engine=engine, source=source, worker=worker
            )
            group.create_task(run_until(stop, sync.run()))
            try:
                yield
            finally:
                stop.set()


async def until(holds: Callable[[], bool], *, within_s: float = 30) -> None:
    async with asyncio.timeout(within_s):
        while not holds():  # noqa: ASYNC110 - what is waited for happens in another process
            await asyncio.sleep(0.02)


def free_ports() -> tuple[int, int, int]:
    sockets = [socket.socket() for _ in range(3)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [int(one.getsockname()[1]) for one in sockets]
    for one in sockets:
        one.close()
    return ports[0], ports[1], ports[2]


@pytest.fixture
async def replica(tmp_path: Path, wheel: TritonWheel) -> AsyncIterator[Replica]:
    settings = replace(a_rig(tmp_path).settings, unload_grace_s=0.3)
    async with HttpClient() as http:
        running = Replica(wheel, settings, free_ports(), http)
        await running.start()
        yield running
        await running.stop()


async def test_model_is_served_swapped_back_and_forth_and_unloaded(
    replica: Replica, tmp_path: Path
) -> None:
    one, two = a_model(tmp_path / "one", "1"), a_model(tmp_path / "two", "2")
    replica.set_list(an_entry("m", one))
    async with replica.synced():
        await until(lambda: replica.required() == ["m"])
        assert await replica.predict("m") == 1
        replica.set_list(an_entry("m", two), an_entry("keeps-one", one, phase="staged"))
        await until(lambda: replica.status("m").get("storage_path") == two)
        await until(lambda: replica.status("m").get("state") == "LOADED")
        assert await replica.predict("m") == 2
        # The first content is still in the cache and older than the second: Triton must reload it.
        replica.set_list(an_entry("m", one), an_entry("keeps-one", one, phase="staged"))
        await until(lambda: replica.status("m").get("storage_path") == one)
        await until(lambda: replica.status("m").get("state") == "LOADED")
        assert await replica.predict("m") == 1
        replica.set_list()
        await until(lambda: replica.required() == [])
        await until(lambda: not list(replica.settings.repository.iterdir()))
        await until(lambda: not list(replica.settings.cache.glob("*/model")))


async def test_refused_model_shows_its_reason_in_the_index(
    replica: Replica, tmp_path: Path
) -> None:
    (tmp_path / "flat").mkdir()
    (tmp_path / "flat" / "model.onnx").write_text("")
    a_model(tmp_path / "broken", "1")
    (tmp_path / "broken/1/model.py").write_text("raise RuntimeError('boom')")
    a_model(tmp_path / "odd", "1")
    (tmp_path / "odd/config.pbtxt").write_text('backend: "python"\nmax_batch_size: "many"\n')
    replica.set_list(
        an_entry("none", (tmp_path / "none").as_uri()),
        an_entry("flat", (tmp_path / "flat").as_uri()),
        an_entry("broken", (tmp_path / "broken").as_uri()),
        an_entry("odd", (tmp_path / "odd").as_uri()),
    )
    async with replica.synced():
        await until(lambda: replica.status("none").get("state") == "DOWNLOAD_FAILED")
        await until(lambda: replica.status("flat").get("state") == "VERIFY_FAILED")
        await until(lambda: replica.status("broken").get("state") == "LOAD_FAILED")
        await until(lambda: replica.status("odd").get("state") == "LOAD_FAILED")
        await asyncio.sleep(1)
        assert "not found" in await replica.reason("none")
        assert "needs a version folder" in await replica.reason("flat")
        assert "boom" in await replica.reason("broken")
        assert "failed to poll" in await replica.reason("odd")
        assert replica.required() is None


async def test_failed_reload_keeps_serving_and_a_new_engine_gets_everything(
    replica: Replica, tmp_path: Path
) -> None:
    good, bad = a_model(tmp_path / "good", "1"), a_model(tmp_path / "bad", "2")
    (tmp_path / "bad/1/model.py").write_text("raise RuntimeError('boom')")
    replica.set_list(an_entry("m", good))
    async with replica.synced():
        await until(lambda: replica.required() == ["m"])
        replica.set_list(an_entry("m", bad))
        await until(lambda: replica.status("m").get("state") == "LOAD_FAILED")
        assert await replica.predict("m") == 1
        replica.set_list(an_entry("m", good))
        await until(lambda: replica.status("m").get("state") == "LOADED")
        await replica.stop()
        await until(lambda: replica.status("m").get("state") == "LOADING")
        assert replica.required() == ["m"]
        await replica.start()
        await until(lambda: replica.status("m").get("state") == "LOADED")
        assert await replica.predict("m") == 1


@pytest.fixture
def endpoint() -> Iterator[str]:
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # noqa: TID251 - its own logger
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


async def test_program_brings_up_a_model_from_object_storage(
    replica: Replica, tmp_path: Path, endpoint: str
) -> None:
    a_model(tmp_path / "local", "7")
    client = boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="key",
        aws_secret_access_key="secret",
    )
    client.create_bucket(Bucket="served")
    client.upload_file(str(tmp_path / "local/config.pbtxt"), "served", "m/config.pbtxt")
    client.upload_file(str(tmp_path / "local/1/model.py"), "served", "m/1/model.py")
    replica.set_list(an_entry("m", "s3://served/m/"))
    settings = replica.settings
    program = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "maserve.cmd.modelsync",
        f"--replica={settings.replica}",
        f"--config={settings.model_config}",
        f"--repository={settings.repository}",
        f"--cache={settings.cache}",
        f"--engine-url={replica.url}",
        f"--engine-grpc={replica.grpc}",
        f"--readiness={settings.readiness_file}",
        env={
            "PATH": os.environ["PATH"],
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
        },
        stderr=asyncio.subprocess.PIPE,
    )
    await until(lambda: replica.required() == ["m"])
    assert await replica.predict("m") == 7
    program.terminate()
    _, log = await program.communicate()
    assert program.returncode == 0, log
    assert b"model-sync stopped" in log
    assert await replica.predict("m") == 7
