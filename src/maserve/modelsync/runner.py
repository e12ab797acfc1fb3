"""Carries out what was decided: each model's one step at a time, beside those of the others."""

import asyncio
from functools import partial

import structlog

from maserve.artifacts import Progress
from maserve.base.clock import Clock
from maserve.base.errors import Unavailable
from maserve.base.keys import ModelName
from maserve.modelsync.cache import Cache
from maserve.modelsync.memory import Memory
from maserve.modelsync.settings import SyncSettings
from maserve.modelsync.steps import Fault, Steps
from maserve.modelsync.types import Action, ModelState, Plan, Step

log = structlog.get_logger()


class StepRunner:
    """Runs steps and keeps in `memory` what is under way and how it ended; sets `wake` then."""

    def __init__(
        self,
        settings: SyncSettings,
        *,
        clock: Clock,
        steps: Steps,
        cache: Cache,
        memory: Memory,
        wake: asyncio.Event,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._steps = steps
        self._cache = cache
        self._memory = memory
        self._wake = wake
        self._tasks: dict[ModelName, asyncio.Task[None]] = {}
        self._downloads = asyncio.Semaphore(settings.parallel_downloads)
        self._loads = asyncio.Semaphore(settings.parallel_loads)

    @property
    def is_idle(self) -> bool:
        """Tell whether no step is under way."""
        return not self._tasks

    def begin(self, plan: Plan, group: asyncio.TaskGroup) -> None:
        """Begin the plan's steps, and break off those that nobody wants any more."""
        for task in (self._tasks[model] for model in plan.cancel):
            if not task.cancelling():  # a second one would break off its cleaning up
                task.cancel()
        for content in plan.release:
            self._memory.held.discard(content)
            self._memory.releasing.add(content)
            self._memory.staged = {pair for pair in self._memory.staged if pair[1] != content}
            group.create_task(self._release(content))
        for action in plan.actions:
            self._memory.busy[action.model] = action
            if action.step is Step.STAGE:  # held from now on: it may be broken off with all there
                self._memory.held.add(action.content)
            self._tasks[action.model] = group.create_task(self._perform(action))

    async def _release(self, content: str) -> None:
        """Let go of a content; what fails here is swept at the next start."""
        try:
            await self._cache.release(content)
        except Unavailable as error:
            log.warning("cache not released", content=content, error=str(error))
        finally:
            self._memory.releasing.discard(content)
            self._wake.set()

    async def _perform(self, action: Action) -> None:
        """Do one step; whatever happens in it concerns this one model only."""
        began_s = self._clock.monotonic()
        try:
            fault = await self._step(action)
        except Exception as error:
            log.exception("step failed", model=action.model, step=action.step.name)
            fault = Fault(state=_STATE_OF[action.step], reason=f"{type(error).__name__}: {error}")
        finally:
            self._memory.busy.pop(action.model, None)
            self._tasks.pop(action.model, None)
            self._wake.set()
        self._finish(action, fault, began_s)

    async def _step(self, action: Action) -> Fault | None:
        match action.step:
            case Step.STAGE:
                async with self._downloads:
                    return await self._steps.stage(action, partial(self._note, action.model))
            case Step.LOAD:
                async with self._loads:
                    return await self._steps.load(action)
            case Step.PUBLISH:
                shown = await self._steps.publish(action)
                self._memory.note_published(action, shown=shown, now=self._clock.monotonic())
                return None
            case Step.UNLOAD:
                return await self._steps.unload(action)
            case Step.REMOVE:
                return await self._steps.remove(action)

    def _note(self, model: ModelName, progress: Progress) -> None:
        """Keep the newest progress; called from any thread."""
        self._memory.progress[model] = progress

    def _finish(self, action: Action, fault: Fault | None, began_s: float) -> None:
        memory, now = self._memory, self._clock.monotonic()
        if fault is not None:
            failure = memory.note_fault(action, fault, settings=self._settings, now=now)
            log.warning(
                "model not brought up",
                model=action.model,
                state=str(failure.state),
                attempt=failure.count,
                error=failure.reason,
            )
            return
        if action.step is Step.STAGE:
            memory.staged.add((action.model, action.content))
        memory.note_success(action)
        if action.step in _DONE:
            duration_s = round(now - began_s, 3)
            log.info(_DONE[action.step], model=action.model, duration_s=duration_s)


_STATE_OF = {
    Step.STAGE: ModelState.DOWNLOAD_FAILED,
    Step.LOAD: ModelState.LOADING,
    Step.PUBLISH: ModelState.LOADING,
    Step.UNLOAD: ModelState.UNLOADING,
    Step.REMOVE: ModelState.UNLOADING,
}
_DONE = {
    Step.STAGE: "model staged",
    Step.LOAD: "model loaded",
    Step.UNLOAD: "model unload asked for",
    Step.REMOVE: "model removed",
}
