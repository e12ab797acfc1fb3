"""The loop: observe, decide, record, act, look again."""

import asyncio
from collections.abc import Mapping

import structlog

from maserve.artifacts import ArtifactSource, CancelableWorker
from maserve.base.clock import Clock
from maserve.base.errors import Unavailable
from maserve.base.keys import ModelName
from maserve.modelsync.applied import Applied
from maserve.modelsync.cache import Cache
from maserve.modelsync.decide import MOVING, decide, first_serving_at_start
from maserve.modelsync.engine import Engine
from maserve.modelsync.listfile import LiftedFile, ListFile
from maserve.modelsync.memory import STUCK_UNWANTED_S, Memory
from maserve.modelsync.modelprocesses import TritonModelProcesses
from maserve.modelsync.readiness import find_readiness, store_readiness
from maserve.modelsync.repository import Repository
from maserve.modelsync.runner import StepRunner
from maserve.modelsync.settings import SyncSettings
from maserve.modelsync.status import ModelStatus, StatusFile, build_status
from maserve.modelsync.steps import Steps
from maserve.modelsync.types import EngineModel, EngineState, Plan, Readiness, Wanted, World
from maserve.modelsync.wanted import wanted_on

log = structlog.get_logger()

_APPLIED_FILE = "applied.json"


class ModelSync:
    """Keeps one replica's serving framework at what the model config wants there.

    Files of state (readiness, status, applied contents) are small and written on the loop: this
    process has nothing else to do meanwhile. Trees are handled in the worker's thread.
    """

    def __init__(
        self,
        settings: SyncSettings,
        *,
        clock: Clock,
        engine: Engine,
        source: ArtifactSource,
        worker: CancelableWorker,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._engine = engine
        self._memory = Memory()
        self._wake = asyncio.Event()
        self._next_look = 0.0
        self._vitals_known = False
        self._list_file = ListFile(settings.model_config)
        self._lifted_file = LiftedFile(settings.model_config)
        self._status = StatusFile(settings.status_file, clock)
        self._applied = Applied(settings.private / _APPLIED_FILE)
        self._repository = Repository(
            settings.repository, cache=settings.cache, private=settings.private
        )
        self._cache = Cache(
            settings.cache,
            user=settings.replica,
            repository=settings.repository,
            source=source,
            worker=worker,
            clock=clock,
        )
        self._processes = TritonModelProcesses(settings.repository, on_end=self._wake.set)
        self._steps = Steps(
            settings,
            clock=clock,
            engine=engine,
            cache=self._cache,
            repository=self._repository,
            applied=self._applied,
            list_file=self._list_file,
            processes=self._processes,
        )
        self._runner = StepRunner(
            settings,
            clock=clock,
            steps=self._steps,
            cache=self._cache,
            memory=self._memory,
            wake=self._wake,
        )

    async def run(self) -> None:
        """Go on until cancelled; running downloads are then broken off, nothing is unloaded."""
        await self._start()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._pace())
            while True:
                self._wake.clear()
                await self._pass_guarded(group)
                await self._wake.wait()

    async def run_once(self) -> None:
        """Pass until nothing is left to do now; a grace or a retry is not waited for."""
        await self._start()
        async with asyncio.TaskGroup() as group:
            while True:
                self._wake.clear()
                await self._pass(group)
                if self._runner.is_idle:
                    return
                await self._wake.wait()

    async def _start(self) -> None:
        self._repository.ensure()
        self._applied.load()
        self._status.load()
        self._memory.held = set(await self._cache.start())

    async def _pace(self) -> None:
        """Wake the loop when the list was replaced or it is time to look."""
        signature = self._signature()
        while True:
            await self._clock.sleep(self._settings.poll_s)
            before, signature = signature, self._signature()
            if signature != before or self._clock.monotonic() >= self._next_look:
                self._wake.set()

    def _signature(self) -> tuple[int, ...]:
        return (*self._list_file.signature(), *self._lifted_file.signature())

    async def _pass_guarded(self, group: asyncio.TaskGroup) -> None:
        try:
            await self._pass(group)
        except Unavailable as error:
            log.warning("pass broken off", error=str(error))
            self._next_look = self._clock.monotonic() + self._settings.fallback_s
        except Exception:
            log.exception("pass failed")
            self._next_look = self._clock.monotonic() + self._settings.fallback_s

    async def _pass(self, group: asyncio.TaskGroup) -> None:
        world = await self._observe()
        now = self._clock.monotonic()
        plan = decide(world, now=now, grace_s=self._settings.unload_grace_s)
        self._record(world, plan)
        self._runner.begin(plan, group)
        pause = self._settings.moving_s if plan.moving else self._settings.fallback_s
        self._next_look = min(now + pause, plan.next_at or now + pause)

    async def _observe(self) -> World:
        memory = self._memory
        readable = self._read_list()
        engine = await self._find_engine()
        readiness = find_readiness(self._settings.readiness_file)
        if readable and engine is not None and memory.wanted is not None:
            self._judge_start(readiness, memory.wanted, engine)
        memory.forget_outdated()
        if engine is not None:
            await self._note_vitals(engine)
        return World(
            list_readable=readable,
            wanted=memory.wanted,
            engine=engine,
            linked=self._repository.linked(),
            applied=self._applied.contents(),
            staged=frozenset(memory.staged),
            held=frozenset(memory.held),
            releasing=frozenset(memory.releasing),
            busy=dict(memory.busy),
            failures=dict(memory.failures),
            unwanted_since=memory.unwanted_since,
            readiness=readiness,
            first_serving=memory.first_serving,
            lifted=self._lifted_file.read(),
            dead=dict(memory.dead),
            stuck=self._find_stuck(),
        )

    async def _note_vitals(self, engine: Mapping[ModelName, EngineModel]) -> None:
        """See which loaded models are dead, and which ones the engine moves for how long."""
        memory, now = self._memory, self._clock.monotonic()
        moving = frozenset(m for m, found in engine.items() if found.state in MOVING)
        memory.note_moving(moving, now)
        if not self._vitals_known:
            self._vitals_known = True
            for model in self._applied.contents():
                await self._steps.watch(model)
        for model in sorted(self._processes.ended() - memory.dead.keys() - memory.busy.keys()):
            found, want = engine.get(model), (memory.wanted or {}).get(model)
            if want is None or found is None or found.state is not EngineState.READY:
                continue
            failure = memory.note_death(model, want, settings=self._settings, now=now)
            log.warning("model is dead", model=model, attempt=failure.count, error=failure.reason)

    def _find_stuck(self) -> dict[ModelName, str]:
        """Return what the engine has been doing for too long, as sentences."""
        memory, now = self._memory, self._clock.monotonic()
        wanted = memory.wanted or {}
        limits = {
            model: self._settings.load_timeout_s if model in wanted else STUCK_UNWANTED_S
            for model in memory.moving_since
        }
        return {
            model: f"a load or unload of {model} has not ended for more than {limits[model]:g} s"
            for model, since in memory.moving_since.items()
            if now - since >= limits[model]
        }

    def _read_list(self) -> bool:
        """Read the list into the memory; tells whether it could be read.

        A missing file is an empty list only for a replica that never had one: a list that vanished
        (the server is being deleted, a volume is remounted) must not take everything away.
        """
        memory = self._memory
        signature, reading = self._list_file.signature(), self._list_file.read()
        problem, entries = reading.problem, reading.entries
        if entries is None and not problem:
            had = memory.list_seen or self._applied.contents() or self._repository.linked()
            entries, problem = (None, "the model config is gone") if had else ((), "")
        else:
            memory.list_seen = memory.list_seen or entries is not None
        if problem != memory.problem:
            event = "model config unreadable" if problem else "model config readable"
            log.warning(event, error=problem)
        memory.problem = problem
        if entries is None:
            return False
        memory.note_list(signature)
        wanted = wanted_on(entries, self._settings.replica)
        for warning in sorted(frozenset(wanted.warnings) - memory.warnings):
            log.warning("odd entry in the model config", error=warning)
        memory.wanted, memory.warnings = wanted.models, frozenset(wanted.warnings)
        return True

    async def _find_engine(self) -> Mapping[ModelName, EngineModel] | None:
        answered = self._memory.engine_answered
        try:
            engine = await self._engine.list_models()
        except Unavailable as error:
            if answered:
                log.warning("engine does not answer", error=str(error))
            self._memory.engine_answered = False
            return None
        if not answered:
            log.info("engine answers", models=len(engine))
        self._memory.engine_answered = True
        return engine

    def _judge_start(
        self,
        readiness: Readiness | None,
        wanted: Mapping[ModelName, Wanted],
        engine: Mapping[ModelName, EngineModel],
    ) -> None:
        """Gate the readiness file at the start, and again when somebody has removed it."""
        memory = self._memory
        removed = readiness is None and memory.first_serving is None
        if not memory.start_judged or removed:
            memory.first_serving = first_serving_at_start(readiness, wanted, engine)
            memory.start_judged = True

    def _record(self, world: World, plan: Plan) -> None:
        """Write what others read. Before acting: a model leaves the readiness list first."""
        memory = self._memory
        memory.unwanted_since = plan.unwanted_since
        if memory.start_judged:
            store_readiness(self._settings.readiness_file, world.readiness, plan.readiness)
            memory.first_serving = plan.first_serving
        self._tell(build_status(world, plan, memory.progress, self._clock.now()))

    def _tell(self, rows: Mapping[ModelName, ModelStatus]) -> None:
        """Write the status; a disk that has no room for it holds up nothing else."""
        memory = self._memory
        try:
            serving = tuple(m for m, want in (memory.wanted or {}).items() if want.serving)
            self._status.store(rows, memory.problem, memory.list_signature, serving)
        except Unavailable as error:
            if memory.status_written:
                log.warning("status not written", error=str(error))
            memory.status_written = False
        else:
            memory.status_written = True
