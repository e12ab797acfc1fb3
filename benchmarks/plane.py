"""A whole control plane with its data plane in this process, for measuring."""

import asyncio
import json
import statistics
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from maserve.backends.triton.local import Engine
from maserve.base.clock import SystemClock
from maserve.base.keys import Key
from maserve.client import Client, ClientSettings
from maserve.cmd.controllermgr import options
from maserve.cmd.logs import open_log
from maserve.cmd.settings import Settings, parse_settings
from maserve.cmd.up import serve_until
from maserve.cmd.wiring import Module
from maserve.testing.fake_engine import FakeEngine
from maserve.testing.loopback import free_port
from maserve.wire import v2

NAMESPACE = "bench"
SERVER = Key(NAMESPACE, "server")
DEPLOYMENT = Key(NAMESPACE, "digits")

SETTINGS = """
inferenceServer: {triton: {autoCompleteConfig: false, drain: {preStopSeconds: 1}}}
modelSync: {unloadGrace: 1s}
"""

MODELS = Path(__file__).parent.parent / "examples" / "models"


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """One replica's own load of a model: when it ended (ISO 8601), and its seconds."""

    cluster: str
    ended: str
    duration_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """One measured rollout: seconds from the write to ROLLOUT_COMPLETE, and every load in it."""

    total_s: float
    loads: tuple[Load, ...]

    @property
    def slowest_s(self) -> float:
        """The slowest single load."""
        return max((load.duration_s for load in self.loads), default=0.0)

    @property
    def steps_s(self) -> float:
        """The sum of the slowest replica's load over the load steps, which follow one another.

        In each cluster the canary loads alone, then all other replicas at once.
        """
        total = 0.0
        for cluster in sorted({load.cluster for load in self.loads}):
            canary, *others = sorted(
                (load for load in self.loads if load.cluster == cluster),
                key=lambda load: load.ended,
            )
            total += canary.duration_s + max((load.duration_s for load in others), default=0.0)
        return total

    @property
    def overhead_s(self) -> float:
        """The time that no replica spent loading."""
        return self.total_s - self.steps_s


def fake_engine(_real: Engine) -> Engine:
    """Stand in for Triton: a program with its interface that loads in no time."""
    return FakeEngine(with_grpc=True)


FAKE = Module(name="engine that loads in no time", decorate=(fake_engine,))


@asynccontextmanager
async def plane(extra: Sequence[Module] = ()) -> AsyncIterator[tuple[Client, Path]]:
    """Run a control plane on free ports and a temporary folder; ends with everything stopped."""
    with tempfile.TemporaryDirectory(prefix="maserve-bench-") as folder:
        home = Path(folder)
        settings = _settings(home)
        stop, ready = asyncio.Event(), asyncio.Event()

        def say(text: str) -> None:
            if text.startswith("ready"):
                ready.set()

        with open_log(home, settings.logs):
            async with asyncio.TaskGroup() as group:
                group.create_task(
                    serve_until(stop, settings, say, (*options(), *extra)), name="control plane"
                )
                await ready.wait()
                client = Client(
                    settings.api_address, settings=ClientSettings(), clock=SystemClock()
                )
                try:
                    async with client:
                        yield client, home
                finally:
                    stop.set()


async def prepare(client: Client, clusters: int) -> None:
    """Bring up a server with two replicas in each cluster and roll out digits-v1."""
    for name in ("digits-v1", "digits-v2"):
        model = v2.Model()
        model.metadata.namespace, model.metadata.name = NAMESPACE, name
        model.spec.package_type = v2.DEPLOYABLE_MODEL_PACKAGE_TYPE_TRITON
        model.spec.deployable_artifact_uri.append(f"file://{MODELS / name}/")
        await client.create(model)
    server = v2.InferenceServer()
    server.metadata.namespace, server.metadata.name = SERVER.namespace, SERVER.name
    server.spec.backend_type = v2.BACKEND_TYPE_TRITON
    server.spec.init_spec.num_instances = 2
    server.spec.cluster_targets.extend(
        v2.ClusterTarget(cluster_id=f"c{number}") for number in range(1, clusters + 1)
    )
    await client.create(server)
    await client.wait_until(
        v2.InferenceServer,
        SERVER,
        lambda found: found is not None and found.status.state == v2.INFERENCE_SERVER_STATE_SERVING,
    )
    deployment = v2.Deployment()
    deployment.metadata.namespace, deployment.metadata.name = NAMESPACE, DEPLOYMENT.name
    deployment.spec.inference_server.name = SERVER.name
    deployment.spec.desired_revision.name = "digits-v1"
    await client.create(deployment)
    await _until_live(client, "digits-v1")


async def roll(client: Client, home: Path, model: str) -> Rollout:
    """Roll the Deployment to `model` and measure from the write to ROLLOUT_COMPLETE."""
    seen = _loads(home)
    clock = SystemClock()
    began_s = clock.monotonic()
    await _want(client, model)
    await _until_live(client, model)
    total_s = clock.monotonic() - began_s
    return Rollout(total_s=total_s, loads=tuple(_loads(home)[len(seen) :]))


async def measure(clusters: int, rollouts: int, extra: Sequence[Module] = ()) -> list[Rollout]:
    """Return rollouts back and forth between the two models, after one to warm up."""
    async with plane(extra) as (client, home):
        await prepare(client, clusters)
        await roll(client, home, "digits-v2")
        measured = []
        for number in range(rollouts):
            await clock_sleep(4.0)  # the old model is unloaded: none is loaded while it still goes
            measured.append(await roll(client, home, f"digits-v{1 + number % 2}"))
        return measured


async def clock_sleep(seconds: float) -> None:
    await SystemClock().sleep(seconds)


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


async def _want(client: Client, model: str) -> None:
    deployment = await client.get(v2.Deployment, DEPLOYMENT)
    deployment.spec.desired_revision.name = model
    await client.apply(deployment)


async def _until_live(client: Client, model: str) -> None:
    await client.wait_until(
        v2.Deployment,
        DEPLOYMENT,
        lambda found: (
            found is not None
            and found.status.stage == v2.DEPLOYMENT_STAGE_ROLLOUT_COMPLETE
            and found.status.current_revision.name == model
        ),
    )


def _loads(home: Path) -> list[Load]:
    """Return every load from the logs of model-sync, oldest first."""
    loads = []
    for log in home.glob("clusters/*/*/*/replicas/*/model-sync.log"):
        cluster = log.relative_to(home / "clusters").parts[0]
        for line in log.read_text().splitlines():
            row = json.loads(line) if line.startswith("{") else {}
            if row.get("event") == "model loaded":
                loads.append(
                    Load(cluster=cluster, ended=row["timestamp"], duration_s=row["duration_s"])
                )
    return sorted(loads, key=lambda load: load.ended)


def _settings(home: Path) -> Settings:
    api, gateway, metrics = (f"127.0.0.1:{free_port()}" for _ in range(3))
    return parse_settings(
        SETTINGS,
        data_dir=home,
        api_address=api,
        gateway_address=gateway,
        metrics_address=metrics,
        storage_variables={},
        keep_running=False,
    )
