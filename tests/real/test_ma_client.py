"""The existing `ma` client, unchanged, against our API server; its own demo manifests included.

Its environment is made once, at the root of the repository, apart from ours: it declares the same
proto names.
"""

import asyncio
import subprocess
import sys
import venv
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from prometheus_client import CollectorRegistry

from maserve.apiserver import ApiServer, ApiSettings, stock_extensions
from maserve.base.clock import SystemClock
from maserve.base.keys import Key
from maserve.resource import to_yaml
from maserve.store.sqlite import SqliteStore
from maserve.testing.resources import a_deployment, a_revision
from maserve.wire import v2

# Each call starts an interpreter; the first test may install the client too.
pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

ENVIRONMENT = Path(__file__).parents[2] / ".venv-ma"
CLIENT = "michelangelo==0.12.0"
NEEDED = [
    "grpcio",
    "grpcio-reflection",
    "protobuf",
    "pyyaml",
    "pydantic",
    "fsspec",
    "GitPython",
    "typing_extensions",
    "requests",
]


@dataclass(frozen=True, slots=True)
class Answer:
    """What one run of the client printed, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def rows(self) -> list[list[str]]:
        """The words of each table row under the heading, which is the last escape sequence."""
        body = self.out.rpartition("\x1b[0m")[2]
        return [line.split() for line in body.splitlines() if line.strip()]


class Ma:
    """Runs `ma` against one API server."""

    def __init__(self, program: Path, address: str, home: Path) -> None:
        self._program = program
        self._env = {"MACTL_ADDRESS": address, "HOME": str(home), "PATH": "/usr/bin:/bin"}

    async def __call__(self, *words: str) -> Answer:
        process = await asyncio.create_subprocess_exec(
            self._program,
            *words,
            env=self._env,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await process.communicate()
        return Answer(process.returncode or 0, out.decode(), err.decode())

    async def done(self, *words: str) -> Answer:
        """Run what must succeed."""
        answer = await self(*words)
        assert answer.code == 0, answer.err[-2000:]
        return answer


@pytest.fixture(scope="session")
def client_environment() -> Path:
    """Return the folder of an environment with the client; makes it if it is not there."""
    program = ENVIRONMENT / "bin" / "ma"
    if not program.exists():
        venv.create(ENVIRONMENT, with_pip=True)
        try:
            pip("--no-deps", CLIENT)
            pip(*NEEDED)
        except subprocess.CalledProcessError as error:
            pytest.skip(f"the existing client cannot be installed: {error}")
    return ENVIRONMENT


def pip(*words: str) -> None:
    command = [str(ENVIRONMENT / "bin" / "python"), "-m", "pip", "install", "-q", *words]
    subprocess.run(command, check=True, timeout=250, stdout=sys.stderr)


@pytest.fixture
def demo(client_environment: Path) -> Path:
    """Return the client's own demo manifests."""
    return next(client_environment.glob("lib/python*/site-packages/michelangelo/cli/sandbox/demo"))


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    async with SqliteStore(tmp_path / "store.db") as opened:
        yield opened


@pytest.fixture
async def ma(store: SqliteStore, client_environment: Path, tmp_path: Path) -> AsyncIterator[Ma]:
    async with ApiServer(
        ApiSettings(address="127.0.0.1:0"),
        store,
        inspector=None,  # type: ignore[arg-type]  # the client does not know our own service
        extensions=stock_extensions(store, environment="unspecified"),
        clock=SystemClock(),
        registry=CollectorRegistry(),
    ) as server:
        yield Ma(client_environment / "bin" / "ma", server.address, tmp_path)


def manifest(folder: Path, text: str) -> str:
    path = folder / "manifest.yaml"
    path.write_text(text)
    return str(path)


def with_snake_case(text: str) -> str:
    """Spell a Deployment's oneof field as the client's merge of an update needs it."""
    return text.replace("inferenceServer:", "inference_server:")


async def test_its_entities_are_ours(ma: Ma) -> None:
    answer = await ma.done("--help")
    entities = [
        "project",
        "model_family",
        "model",
        "inference_server",
        "deployment",
        "revision",
        "cluster",
        "ray_cluster",
    ]
    missing = [entity for entity in entities if f"Manage {entity} resources" not in answer.out]
    assert missing == []
    assert "serving_ext" not in answer.out


async def test_its_demo_is_applied_shown_and_deleted(
    ma: Ma, demo: Path, store: SqliteStore
) -> None:
    await ma.done("project", "apply", "-f", str(demo / "project.yaml"))
    await ma.done("model", "apply", "-f", str(demo / "inference" / "model.yaml"))
    server = demo / "inference" / "inferenceserver.yaml"
    await ma.done("inference_server", "apply", "-f", str(server))
    await ma.done("deployment", "apply", "-f", str(demo / "inference" / "deployment.yaml"))
    stored = await store.get(v2.Deployment, Key("default", "deployment-example"))
    assert stored.spec.desired_revision.name == "bert-cola-37"
    assert stored.spec.strategy.HasField("rolling")

    listed = await ma.done("deployment", "get", "-A")
    assert [row[:2] for row in listed.rows] == [["default", "deployment-example"]]
    assert listed.rows[0][2] != "N/A"
    shown = await ma.done(
        "inference_server", "get", "-n", "default", "inference-server-example", "-o", "yaml"
    )
    found = yaml.safe_load(shown.out)["inference_server"]
    assert found["spec"]["cluster_targets"][0]["cluster_id"] == "michelangelo-sandbox"

    await ma.done("deployment", "delete", "-n", "default", "--name", "deployment-example")
    gone = await ma("deployment", "get", "-n", "default", "deployment-example")
    assert gone.code != 0
    assert "NOT_FOUND" in gone.err
    assert (await ma.done("deployment", "get", "-n", "default")).rows == []


async def test_its_demo_of_two_clusters_is_applied(ma: Ma, demo: Path, store: SqliteStore) -> None:
    folder = demo / "inference-multicluster"
    await ma.done("model", "apply", "-f", str(folder / "model.yaml"))
    await ma.done("inference_server", "apply", "-f", str(folder / "inferenceserver.yaml"))
    await ma.done("deployment", "apply", "-f", str(folder / "deployment.yaml"))
    server = await store.get(v2.InferenceServer, Key("default", "inference-server-multicluster"))
    assert len(server.spec.cluster_targets) == 2


async def test_applying_again_updates(ma: Ma, store: SqliteStore, tmp_path: Path) -> None:
    text = with_snake_case(to_yaml([a_deployment(desired="m1")]))
    await ma.done("deployment", "apply", "-f", manifest(tmp_path, text))
    text = with_snake_case(to_yaml([a_deployment(desired="m2")]))
    await ma.done("deployment", "apply", "-f", manifest(tmp_path, text))
    stored = await store.get(v2.Deployment, Key("demo", "d1"))
    assert stored.spec.desired_revision.name == "m2"
    assert stored.metadata.generation == 2


async def test_a_dry_run_stores_nothing(ma: Ma, demo: Path, store: SqliteStore) -> None:
    model = str(demo / "inference" / "model.yaml")
    await ma.done("model", "apply", "--dry-run", "-f", model)
    assert await store.find(v2.Model, Key("default", "bert-cola-37")) is None


async def test_a_refusal_reaches_the_user(ma: Ma, tmp_path: Path) -> None:
    bad = a_deployment()
    bad.spec.ClearField("inference_server")
    answer = await ma("deployment", "apply", "-f", manifest(tmp_path, to_yaml([bad])))
    assert answer.code != 0
    assert "one field in oneof spec.target(inference_server,mobile_spec) must be set" in answer.err


async def store_revisions(store: SqliteStore) -> None:
    for name, kind, base, owner in (
        ("r1", "Deployment", "digits", "ann"),
        ("r2", "Deployment", "letters", "bob"),
        ("r3", "Model", "digits", "bob"),
    ):
        revision = a_revision(name, base_kind=kind, base=base)
        revision.spec.owner.name = owner
        await store.create(revision)


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        ((), ["r3", "r2", "r1"]),
        (("--deployment", "digits"), ["r1"]),
        (("--deployment", "%t%"), ["r2", "r1"]),
        (("--model", "digits"), ["r3"]),
        (("--owner", "bob"), ["r3", "r2"]),
    ],
    ids=["all", "deployment", "pattern", "model", "owner"],
)
async def test_revisions_are_filtered(
    ma: Ma, store: SqliteStore, filters: tuple[str, ...], names: list[str]
) -> None:
    await store_revisions(store)
    answer = await ma.done("revision", "get", "-n", "demo", *filters)
    assert sorted(row[1] for row in answer.rows) == sorted(names)
