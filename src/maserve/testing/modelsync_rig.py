"""Model-sync on a folder, with an engine and a storage that do as told; for virtual time."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from maserve.artifacts import ArtifactUri, Cancel, CancelableWorker, OnProgress, Progress
from maserve.base.errors import Error, NotFound, Unavailable
from maserve.base.keys import ModelName, ReplicaName
from maserve.base.tasks import run_until
from maserve.modelconfig.types import Entry, render_entries
from maserve.modelsync import EngineModel, EngineState, LoadAnswer, ModelSync, SyncSettings
from maserve.testing.clock import LoopClock

T = TypeVar("T")

REPLICA = ReplicaName("r0")
GRACE_S = 2.0


class InlineWorker(CancelableWorker):
    """Runs blocking work at once: real threads and virtual time do not meet in one test."""

    def __init__(self) -> None:
        super().__init__("inline")

    async def run(self, work: Callable[[Cancel], T]) -> T:
        await asyncio.sleep(0)
        return work(Cancel())


class FakeSource:
    """A storage: files by URI. `errors` are raised, `held` URIs end half done until released."""

    def __init__(self) -> None:
        self.artifacts: dict[str, Mapping[str, str]] = {}
        self.errors: dict[str, Error] = {}
        self.held: dict[str, asyncio.Event] = {}
        self.calls: list[str] = []

    def put(self, uri: str, files: Mapping[str, str] | None = None) -> str:
        self.artifacts[uri] = files or {"1/model.py": uri}
        return uri

    async def check_exists(self, uri: ArtifactUri) -> None:
        if str(uri) not in self.artifacts:
            raise NotFound("artifact", uri)

    async def download(self, uri: ArtifactUri, into: Path, on_progress: OnProgress) -> None:
        self.calls.append(str(uri))
        if error := self.errors.get(str(uri)):
            raise error
        await self.check_exists(uri)
        for name, text in self.artifacts[str(uri)].items():
            (into / name).parent.mkdir(parents=True, exist_ok=True)
            (into / name).write_text(text)
            on_progress(Progress(bytes_done=len(text), bytes_total=100))
            if gate := self.held.get(str(uri)):
                await gate.wait()


class RepositoryEngine:
    """A serving framework that loads what is in its repository folder, as Triton does.

    A version folder with a file `fails` does not load, its text is the reason. A model that is
    loaded is loaded again only from newer folders. `journal` has every load and unload with its
    time.
    """

    def __init__(self, repository: Path, clock: LoopClock) -> None:
        self._repository = repository
        self._clock = clock
        self._life = 0
        self.down = False
        self.silent = False
        """Does what it is asked, but no answer of a load arrives."""
        self.load_s = 0.5
        self.unload_s = 0.5
        self.contents: dict[str, str] = {}
        self.dates: dict[str, int] = {}
        self.failed: dict[str, str] = {}
        self.moving: dict[str, EngineState] = {}
        self.journal: list[tuple[float, str, str]] = []

    def restart(self) -> None:
        self._life += 1
        self.contents.clear()
        self.failed.clear()
        self.moving.clear()

    async def list_models(self) -> Mapping[ModelName, EngineModel]:
        self._check_up()
        names = [path.name for path in self._repository.iterdir()]
        return {ModelName(name): self._model(name) for name in sorted(names)}

    async def count_processes(self, _model: ModelName) -> int:
        return 0

    async def load(self, model: ModelName) -> LoadAnswer:
        self._check_up()
        self.journal.append((self._clock.monotonic(), "load", model))
        self.moving[model] = EngineState.LOADING
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[LoadAnswer | None] = loop.create_future()
        loop.call_later(self.load_s, self._end_load, model, self._life, answer)
        said = await answer
        if said is None:
            raise Unavailable("connection lost")
        return said

    async def unload(self, model: ModelName) -> None:
        self._check_up()
        self.journal.append((self._clock.monotonic(), "unload", model))
        self.contents.pop(model, None)
        self.failed.pop(model, None)
        self.moving[model] = EngineState.UNLOADING
        asyncio.get_running_loop().call_later(self.unload_s, self.moving.pop, model, None)

    def calls(self, verb: str) -> list[str]:
        return [model for _, what, model in self.journal if what == verb]

    def _end_load(self, model: str, life: int, answer: "asyncio.Future[LoadAnswer | None]") -> None:
        """End a load, also one that nobody waits for any more; one of an earlier life is lost."""
        is_alive = life == self._life
        if is_alive:
            self.moving.pop(model, None)
        said = self._loaded(model) if is_alive and not self.down else None
        if not answer.done():
            answer.set_result(None if self.silent else said)

    def _loaded(self, model: str) -> LoadAnswer:
        folder = self._repository / model
        if not folder.is_dir():
            return LoadAnswer(accepted=False, text="failed to poll from model repository")
        code = folder / "1" / "model.py"
        config = folder / "config.pbtxt"
        reason = config.read_text().partition("backend: ")[2].strip() if config.exists() else ""
        fails = folder / "1" / "fails"
        reason = fails.read_text() if fails.exists() else reason
        reason = reason if reason or code.exists() else "model.py does not exist"
        date = max(path.stat().st_mtime_ns for path in folder.iterdir())
        if model in self.contents and date <= self.dates[model]:
            return LoadAnswer(accepted=True)
        if not reason:
            self.dates[model] = date
            self.contents[model] = code.read_text()
            self.failed.pop(model, None)
            return LoadAnswer(accepted=True)
        if model not in self.contents:
            self.failed[model] = reason
        return LoadAnswer(accepted=False, text=f"load failed: {reason}")

    def _model(self, name: str) -> EngineModel:
        if name in self.contents:
            return EngineModel(state=EngineState.READY)
        if name in self.moving:
            return EngineModel(state=self.moving[name])
        if name in self.failed:
            return EngineModel(state=EngineState.FAILED, reason=self.failed[name])
        return EngineModel(state=EngineState.UNLOADED)

    def _check_up(self) -> None:
        if self.down:
            raise Unavailable("connection refused")


@dataclass(slots=True, kw_only=True)
class SyncRig:
    """One replica's folders and what stands around its model-sync."""

    root: Path
    clock: LoopClock = field(default_factory=LoopClock)
    source: FakeSource = field(default_factory=FakeSource)
    engine: RepositoryEngine
    worker: CancelableWorker = field(default_factory=InlineWorker)
    settings: SyncSettings

    def set_list(self, *entries: Entry) -> None:
        self.set_list_text(render_entries(entries))

    def set_list_text(self, text: str) -> None:
        path = self.settings.model_config
        path.with_name("new").write_text(text)
        path.with_name("new").replace(path)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run model-sync around the block."""
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(run_until(stop, self.build().run()))
            try:
                yield
            finally:
                stop.set()

    def build(self, **changes: Any) -> ModelSync:
        return ModelSync(
            replace(self.settings, **changes),
            clock=self.clock,
            engine=self.engine,
            source=self.source,
            worker=self.worker,
        )

    async def until(self, holds: Callable[[], bool], *, within_s: float = 60.0) -> None:
        """Return once `holds`; fails after `within_s` of this clock."""
        async with asyncio.timeout(within_s):
            while not holds():
                await self.clock.sleep(0.05)

    def required(self) -> list[str] | None:
        """Return what the readiness file requires, None when there is none."""
        path = self.settings.readiness_file
        return list(json.loads(path.read_text())["required"]) if path.exists() else None

    def status(self, model: str) -> dict[str, Any]:
        """Return a model's row of the status file, empty when there is none."""
        path = self.settings.status_file
        models = json.loads(path.read_text())["models"] if path.exists() else {}
        return dict(models.get(model, {}))

    def state(self, model: str) -> str:
        return str(self.status(model).get("state", ""))

    def serves(self, model: str, content: str) -> bool:
        return self.engine.contents.get(model) == content


def a_rig(root: Path, replica: ReplicaName = REPLICA) -> SyncRig:
    """Make the folders of one replica below `root`; replicas of one root share the cache."""
    clock = LoopClock()
    home = root / replica
    (home / "repository").mkdir(parents=True)
    settings = SyncSettings(
        replica=replica,
        model_config=root / "model-list.json",
        list_lock=root / "model-list.json.lock",
        repository=home / "repository",
        cache=root / "cache",
        private=home / "private",
        readiness_file=home / "readiness.json",
        status_file=home / "status.json",
        unload_grace_s=GRACE_S,
    )
    engine = RepositoryEngine(settings.repository, clock)
    return SyncRig(root=root, clock=clock, engine=engine, settings=settings)


def an_entry(name: str, uri: str, *, deployment: str = "d1", **fields: str) -> Entry:
    """Build an entry, serving unless `phase` says otherwise."""
    return Entry(
        name=ModelName(name),
        storage_path=uri,
        deployment_name=deployment,
        phase=fields.get("phase", "serving"),
        canary_pod=ReplicaName(fields.get("canary_pod", "")),
    )
