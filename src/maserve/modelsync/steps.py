"""What is done to one model at a time. A step answers what went wrong; it raises no `Error`."""

from dataclasses import dataclass

import structlog

from maserve.artifacts import OnProgress
from maserve.base.clock import Clock
from maserve.base.errors import Denied, Error, Invalid, NotFound
from maserve.base.keys import ModelName
from maserve.modelsync.applied import Applied
from maserve.modelsync.cache import Cache
from maserve.modelsync.engine import Engine, LoadAnswer
from maserve.modelsync.listfile import ListFile
from maserve.modelsync.lock import locked
from maserve.modelsync.modelprocesses import ModelProcesses
from maserve.modelsync.repository import Repository
from maserve.modelsync.settings import SyncSettings
from maserve.modelsync.types import (
    FAILURE_CONTENT,
    Action,
    EngineModel,
    EngineState,
    ModelState,
)
from maserve.modelsync.wanted import wanted_on

log = structlog.get_logger()

_UNLOADED = EngineModel(state=EngineState.UNLOADED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Why a step did not do it; the fields are those of `Failure`."""

    state: ModelState
    reason: str
    permanent: bool = False
    hidden: bool = False


class Steps:
    """The outward half of model-sync: every method is idempotent."""

    def __init__(
        self,
        settings: SyncSettings,
        *,
        clock: Clock,
        engine: Engine,
        cache: Cache,
        repository: Repository,
        applied: Applied,
        list_file: ListFile,
        processes: ModelProcesses,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._engine = engine
        self._cache = cache
        self._repository = repository
        self._applied = applied
        self._list_file = list_file
        self._processes = processes

    async def stage(self, action: Action, on_progress: OnProgress) -> Fault | None:
        """Have the wanted content in the cache, whole and verified."""
        try:
            await self._cache.prepare(action.model, action.storage_path, on_progress)
        except Invalid as error:
            reason = _naming(action.storage_path, error)
            return Fault(state=ModelState.VERIFY_FAILED, reason=reason, permanent=True, hidden=True)
        except (NotFound, Denied) as error:
            return Fault(
                state=ModelState.DOWNLOAD_FAILED, reason=str(error), permanent=True, hidden=True
            )
        except Error as error:
            return Fault(state=ModelState.DOWNLOAD_FAILED, reason=str(error))
        return None

    async def load(self, action: Action) -> Fault | None:
        """Put the content into the repository and have it loaded, in place of an earlier one.

        Without an answer nothing is known: the next pass looks at the index.
        """
        try:
            before = self._repository.linked().get(action.model, FAILURE_CONTENT)
            if before not in (FAILURE_CONTENT, self._applied.contents().get(action.model)):
                # The load of what is linked was never answered, so what is loaded is not known.
                self._applied.drop(action.model)
            is_applied = self._applied.contents().get(action.model) == action.content
            self._repository.link(action.model, action.content, self._clock.now(), anew=is_applied)
            self._processes.forget(action.model)
            answer = await self._engine.load(action.model)
            model = (await self._engine.list_models()).get(action.model, _UNLOADED)
            fault = _judge(answer, model)
            if fault and model.state is EngineState.READY and before != FAILURE_CONTENT:
                self._repository.link(action.model, before, self._clock.now())
        except Invalid as error:
            return Fault(
                state=ModelState.LOAD_FAILED, reason=str(error), permanent=True, hidden=True
            )
        except Error as error:
            return Fault(state=ModelState.LOADING, reason=f"load: {error}")
        if fault is None:
            self._applied.set(action.model, action.content)
            self._repository.forget_failure(action.model)
            await self.watch(action.model)
        return fault

    async def watch(self, model: ModelName) -> None:
        """Watch the processes of a loaded model; where they cannot be told there are none."""
        try:
            self._processes.watch(model, await self._engine.count_processes(model))
        except Error as error:
            log.warning("processes of a model are not watched", model=model, error=str(error))

    async def publish(self, action: Action) -> bool:
        """Make the engine's index show the action's reason; tells whether it does."""
        try:
            self._repository.link_failure(action.model, action.reason)
            await self._engine.load(action.model)
            model = (await self._engine.list_models()).get(action.model, _UNLOADED)
        except Error as error:
            log.warning("failure not published", model=action.model, error=str(error))
            return False
        return model.state is EngineState.FAILED

    async def unload(self, action: Action) -> Fault | None:
        """Unload unless an entry wants the model again by now."""
        lock, timeout_s = self._settings.list_lock, self._settings.lock_timeout_s
        try:
            if lock is None:
                await self._unload_unwanted(action.model)
            else:
                async with locked(lock, self._clock, timeout_s):
                    await self._unload_unwanted(action.model)
        except Error as error:
            return Fault(state=ModelState.UNLOADING, reason=f"unload: {error}")
        return None

    async def remove(self, action: Action) -> Fault | None:
        """Take an unloaded model's folder out of the repository."""
        self._repository.remove(action.model)
        self._applied.drop(action.model)
        return None

    async def _unload_unwanted(self, model: ModelName) -> None:
        reading = self._list_file.read()
        if reading.entries is None:
            return
        if model in wanted_on(reading.entries, self._settings.replica).models:
            return
        self._processes.forget(model)
        await self._engine.unload(model)
        self._applied.drop(model)


def _naming(storage_path: str, error: Error) -> str:
    """Return the error's sentence with the artifact it is about, named once."""
    text = str(error)
    return text if storage_path.rstrip("/") in text else f"{storage_path}: {text}"


def _judge(answer: LoadAnswer, model: EngineModel) -> Fault | None:
    """Tell from the index, and for a refused reload from the answer, what a load call came to."""
    if model.state is EngineState.READY:
        if answer.accepted:
            return None
        reason = f"{answer.text}; the earlier content keeps serving"
        return Fault(state=ModelState.LOAD_FAILED, reason=reason, permanent=True)
    if model.state is EngineState.FAILED and (answer.accepted or model.reason in answer.text):
        return Fault(state=ModelState.LOAD_FAILED, reason=model.reason, permanent=True)
    if not answer.accepted:
        return Fault(state=ModelState.LOAD_FAILED, reason=answer.text, permanent=True, hidden=True)
    return Fault(state=ModelState.LOADING, reason=f"load accepted, but it is {model.state}")
