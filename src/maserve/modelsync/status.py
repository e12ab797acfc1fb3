"""What model-sync says about each model, for whoever can read its file."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from maserve.artifacts import Progress
from maserve.base.clock import Clock
from maserve.base.errors import Error
from maserve.base.keys import ModelName
from maserve.host.files import find_json, write_json
from maserve.modelsync.decide import find_failure, is_loaded
from maserve.modelsync.types import (
    EngineState,
    ModelState,
    Plan,
    Step,
    Wanted,
    World,
)

_PROGRESS_EVERY_S = 1.0

_WHY_MOVING = {
    EngineState.LOADING: "an earlier load is still going on; if it never ends, end the replica",
    EngineState.UNLOADING: "an earlier unload is still going on",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelStatus:
    """One model's row of the status file; `since` is when it came into this state.

    `stuck` says what will not end by itself any more, empty for nothing.
    """

    state: ModelState
    storage_path: str = ""
    reason: str = ""
    permanent: bool = False
    stuck: str = ""
    bytes_done: int = 0
    bytes_total: int = 0
    since: datetime


def build_status(
    world: World, plan: Plan, progress: Mapping[ModelName, Progress], now: datetime
) -> dict[ModelName, ModelStatus]:
    """Describe every model that is wanted or still to go; pure. `since` is `now` everywhere."""
    rows = {model: _wanted_row(world, model, want, now) for model, want in _wanted(world).items()}
    rows |= {
        model: ModelStatus(
            state=ModelState.UNLOADING,
            reason=_why_going(world, model),
            stuck=world.stuck.get(model, ""),
            since=now,
        )
        for model in plan.unwanted_since
    }
    return {model: _with_progress(row, progress.get(model)) for model, row in sorted(rows.items())}


class StatusFile:
    """Replaces `{"models": {name: {...}}, "problem": text, "list": [...], "serving": [name]}`.

    When something changed. `list` is the signature of the model config that the rows are about,
    `serving` its models in that phase here. Progress alone is written
    at most once a second.
    """

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._last: dict[ModelName, ModelStatus] = {}
        self._about: object = None
        self._written_s = 0.0

    def load(self) -> None:
        """Take over since when each model is in its state from an earlier process's file.

        A file that cannot be read costs just that.
        """
        try:
            value = find_json(self._path)
        except Error:
            value = None
        rows = value.get("models") if isinstance(value, dict) else None
        for name, row in (rows if isinstance(rows, dict) else {}).items():
            status = _find_row(row)
            if status is not None:
                self._last[ModelName(name)] = status

    def store(
        self,
        rows: Mapping[ModelName, ModelStatus],
        problem: str,
        listed: tuple[int, ...],
        serving: tuple[ModelName, ...],
    ) -> None:
        """Write the rows if something differs. Raises `Unavailable` naming the file."""
        kept = {model: self._dated(model, row) for model, row in rows.items()}
        about = (problem, listed, serving)
        moved = _plain(kept) != _plain(self._last) or about != self._about
        due = self._clock.monotonic() - self._written_s >= _PROGRESS_EVERY_S
        if not moved and not (due and kept != self._last):
            return
        models = {str(model): _render(row) for model, row in kept.items()}
        about_list = {"problem": problem, "list": listed, "serving": serving}
        write_json(self._path, {"models": models, **about_list})
        self._last, self._about = kept, about
        self._written_s = self._clock.monotonic()

    def _dated(self, model: ModelName, row: ModelStatus) -> ModelStatus:
        before = self._last.get(model)
        return replace(row, since=before.since) if before and before.state is row.state else row


def _wanted(world: World) -> Mapping[ModelName, Wanted]:
    return world.wanted or {}


def _wanted_row(world: World, model: ModelName, want: Wanted, now: datetime) -> ModelStatus:
    state, reason, permanent = _judge(world, model, want)
    return ModelStatus(
        state=state,
        storage_path=want.storage_path,
        reason=reason,
        permanent=permanent,
        stuck=world.stuck.get(model, ""),
        since=now,
    )


def _judge(world: World, model: ModelName, want: Wanted) -> tuple[ModelState, str, bool]:
    if want.fault:
        return ModelState.VERIFY_FAILED, want.fault, True
    if is_loaded(world, model, want):
        return ModelState.LOADED, "", False
    failure = find_failure(world, model, want)
    if model in world.dead:
        return ModelState.DEAD, world.dead[model], failure is not None and failure.permanent
    action = world.busy.get(model)
    if action is not None and action.step is Step.STAGE:
        return ModelState.DOWNLOADING, failure.reason if failure else "", False
    if action is not None and action.step is Step.LOAD:
        return ModelState.LOADING, "", False
    if failure is not None:
        return failure.state, failure.reason, failure.permanent
    return ModelState.LOADING, _why_waiting(world, model), False


def _why_waiting(world: World, model: ModelName) -> str:
    if world.engine is None:
        return "the serving framework does not answer"
    return _why_moving(world, model)


def _why_moving(world: World, model: ModelName) -> str:
    known = (world.engine or {}).get(model)
    return _WHY_MOVING.get(known.state, "") if known is not None else ""


def _why_going(world: World, model: ModelName) -> str:
    failure = world.failures.get(model)
    if failure is not None:
        return failure.reason
    if model in world.busy:
        return ""
    moving = _why_moving(world, model)
    return moving or "no entry wants it; waiting for the data plane to let go"


def _with_progress(row: ModelStatus, progress: Progress | None) -> ModelStatus:
    if progress is None or row.state is not ModelState.DOWNLOADING:
        return row
    return replace(row, bytes_done=progress.bytes_done, bytes_total=progress.bytes_total)


def _plain(rows: Mapping[ModelName, ModelStatus]) -> dict[ModelName, ModelStatus]:
    """Leave out what changes all the time."""
    return {model: replace(row, bytes_done=0) for model, row in rows.items()}


def _render(row: ModelStatus) -> dict[str, object]:
    return {
        "state": str(row.state),
        "storage_path": row.storage_path,
        "reason": row.reason,
        "permanent": row.permanent,
        "stuck": row.stuck,
        "bytes_done": row.bytes_done,
        "bytes_total": row.bytes_total,
        "since": row.since.astimezone(UTC).isoformat(timespec="milliseconds"),
    }


def _find_row(row: object) -> ModelStatus | None:
    if not isinstance(row, dict):
        return None
    try:
        since = datetime.fromisoformat(str(row["since"]))
        return ModelStatus(state=ModelState(str(row["state"])), since=since)
    except (KeyError, ValueError):
        return None
