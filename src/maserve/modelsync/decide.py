"""One pass of model-sync, decided: pure."""

from collections.abc import Iterable, Mapping

from maserve.base.keys import ModelName
from maserve.modelsync.types import (
    FAILURE_CONTENT,
    Action,
    EngineModel,
    EngineState,
    Failure,
    ModelState,
    Plan,
    Readiness,
    Step,
    Wanted,
    World,
)

_ABSENT = EngineModel(state=EngineState.UNLOADED)
_BRINGS_UP = (Step.STAGE, Step.LOAD)
MOVING = (EngineState.LOADING, EngineState.UNLOADING)


def decide(world: World, *, now: float, grace_s: float) -> Plan:
    """Say what to start, what to stop and what the readiness probe may require.

    A list that cannot be read takes nothing away: no unload, no readiness change; what it wanted
    when it was last read is still brought up. `now` is the clock's monotonic time.
    """
    if world.wanted is None:
        return Plan(readiness=world.readiness, first_serving=world.first_serving)
    unwanted = _unwanted(world)
    required = _required(world)
    since = {m: now if m in required else world.unwanted_since.get(m, now) for m in unwanted}
    readiness, first_serving = _readiness(world)
    ups = [_bring_up(world, model, want, now) for model, want in world.wanted.items()]
    downs = [_take_down(world, model, since[model], now, grace_s) for model in unwanted]
    return Plan(
        actions=tuple(action for action in (*ups, *downs) if action is not None),
        cancel=_obsolete(world),
        release=_releasable(world),
        readiness=readiness,
        first_serving=first_serving,
        unwanted_since=since,
        moving=_is_moving(world),
        next_at=_next_at(world, since, now, grace_s),
    )


def is_loaded(world: World, model: ModelName, want: Wanted) -> bool:
    """Tell whether the engine has just the wanted content of the model, ready."""
    return (
        _engine_model(world, model).state is EngineState.READY
        and world.applied.get(model) == want.content
        and world.linked.get(model) == want.content
        and model not in world.dead
    )


def find_failure(world: World, model: ModelName, want: Wanted) -> Failure | None:
    """Return the failure of the wanted content; one of another content does not count."""
    failure = world.failures.get(model)
    return failure if failure is not None and failure.content == want.content else None


def first_serving_at_start(
    readiness: Readiness | None,
    wanted: Mapping[ModelName, Wanted],
    engine: Mapping[ModelName, EngineModel],
) -> frozenset[ModelName] | None:
    """Tell what must be READY before the replica may take traffic; None keeps the present file.

    The file of an earlier process beside the same engine is kept if all it requires is READY. One
    that requires nothing says nothing about the engine: it is kept only if nothing is missing.
    """
    serving = frozenset(model for model, want in wanted.items() if want.serving)
    ready = frozenset(model for model in engine if engine[model].state is EngineState.READY)
    if readiness is None:
        return serving
    kept = serving <= ready if not readiness.required else set(readiness.required) <= ready
    return None if kept else serving


def _bring_up(world: World, model: ModelName, want: Wanted, now: float) -> Action | None:
    if want.fault or model in world.busy or is_loaded(world, model, want):
        return None
    state = _engine_model(world, model).state
    if state in MOVING:
        return None
    failure = find_failure(world, model, want)
    if failure is not None and now < failure.retry_at and not _is_forgotten(world, model, failure):
        return _publish(world, model, failure, now)
    if want.content in world.releasing:
        return None
    step = Step.LOAD if (model, want.content) in world.staged else Step.STAGE
    if step is Step.LOAD and world.engine is None:
        return None
    return Action(step=step, model=model, storage_path=want.storage_path, content=want.content)


def _is_forgotten(world: World, model: ModelName, failure: Failure) -> bool:
    """Tell whether an engine that started anew knows nothing of a load that failed before."""
    reported = failure.state is ModelState.LOAD_FAILED and failure.permanent and not failure.hidden
    unloaded = _engine_model(world, model).state is EngineState.UNLOADED
    return reported and unloaded and world.engine is not None


def _publish(world: World, model: ModelName, failure: Failure, now: float) -> Action | None:
    """Show a failure in the index, which may be all that the control plane sees.

    Never in place of a model that still serves an earlier content.
    """
    state = _engine_model(world, model).state
    shown = not failure.hidden and state is EngineState.FAILED
    if not failure.permanent or shown or now < failure.publish_at:
        return None
    if world.engine is None or state is EngineState.READY:
        return None
    return Action(step=Step.PUBLISH, model=model, content=failure.content, reason=failure.reason)


def _take_down(
    world: World, model: ModelName, since: float, now: float, grace_s: float
) -> Action | None:
    failure = world.failures.get(model)
    if not world.list_readable or world.engine is None or model in world.busy:
        return None
    if failure is not None and failure.content == FAILURE_CONTENT and now < failure.retry_at:
        return None
    state = _engine_model(world, model).state
    if state in MOVING:
        return None
    if state is not EngineState.READY and model in world.linked:
        return Action(step=Step.REMOVE, model=model)
    if model in _required(world) or now < since + grace_s:
        return None
    return Action(step=Step.UNLOAD, model=model)


def _unwanted(world: World) -> tuple[ModelName, ...]:
    """Return the models of ours that no entry wants; what others loaded elsewhere is not ours."""
    if not world.list_readable or world.wanted is None:
        return ()
    ours = world.linked.keys() | world.applied.keys()
    return tuple(sorted(ours - world.wanted.keys()))


def _obsolete(world: World) -> tuple[ModelName, ...]:
    """Return the models whose running download or load nobody wants any more.

    The engine goes on with a load; but one that never ends must not keep its place among the loads.
    """
    if not world.list_readable or world.wanted is None:
        return ()
    return tuple(
        sorted(
            model
            for model, action in world.busy.items()
            if action.step in _BRINGS_UP and _content(world.wanted, model) != action.content
        )
    )


def _releasable(world: World) -> tuple[str, ...]:
    if not world.list_readable or world.wanted is None:
        return ()
    used = {want.content for want in world.wanted.values()}
    used |= {*world.linked.values(), *world.applied.values()}
    used |= {action.content for action in world.busy.values()}
    return tuple(sorted(world.held - used))


def _readiness(world: World) -> tuple[Readiness | None, frozenset[ModelName] | None]:
    if not world.list_readable or world.wanted is None:
        return world.readiness, world.first_serving
    every_serving = {model for model, want in world.wanted.items() if want.serving}
    serving = every_serving - world.lifted
    ready = {m for m in serving if _engine_model(world, m).state is EngineState.READY}
    first = world.first_serving
    if first is not None and (world.engine is None or (first & serving) - ready):
        return None, first
    # A model that was loaded here once stays required when the engine has restarted without it: it
    # may have been promoted, and routed to, since the file was written.
    once_loaded = serving & world.applied.keys()
    required = (set(_required(world)) & serving) | ready | once_loaded
    return Readiness(required=_sorted(required), pending=_sorted(every_serving - required)), None


def _required(world: World) -> tuple[ModelName, ...]:
    """Return what the readiness file requires as this pass has found it."""
    return world.readiness.required if world.readiness else ()


def _is_moving(world: World) -> bool:
    if world.engine is None:
        return True
    return any(model.state in MOVING for model in world.engine.values())


def _next_at(
    world: World, since: Mapping[ModelName, float], now: float, grace_s: float
) -> float | None:
    """Return when time alone changes the decision, None if it does not."""
    retries = (failure.retry_at for failure in world.failures.values())
    graces = (start + grace_s for start in since.values())
    return min((at for at in (*retries, *graces) if at > now), default=None)


def _engine_model(world: World, model: ModelName) -> EngineModel:
    return (world.engine or {}).get(model, _ABSENT)


def _content(wanted: Mapping[ModelName, Wanted], model: ModelName) -> str:
    return wanted[model].content if model in wanted else FAILURE_CONTENT


def _sorted(models: Iterable[ModelName]) -> tuple[ModelName, ...]:
    return tuple(sorted(models))
