"""What model-sync says about a model, merged into what the engine's index says. Pure.

The index knows nothing of a model before its files are there: how far a download is, or why there
will never be one, is only in the file that model-sync writes beside the replica.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from maserve.backends.types import LoadState
from maserve.base.keys import ModelName

DEAD = "DEAD"
"""The state of a model that the engine shows READY and that answers errors alone."""

_STAND_IN = "backend 'model-sync: "
_STAND_IN_END = "', try specifying"
_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "bytes"))

_Answer = tuple[LoadState, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncRow:
    """One model's row; `stuck` says what will not end by itself any more."""

    state: str
    reason: str = ""
    permanent: bool = False
    stuck: str = ""
    bytes_done: int = 0
    bytes_total: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncStatus:
    """The whole file. `problem` says why the model config cannot be read.

    `is_outdated`: it is about an earlier model config than the one that is there. `serving` are the
    models that the list has in that phase on the replica.
    """

    rows: Mapping[ModelName, SyncRow] = field(default_factory=dict)
    problem: str = ""
    is_outdated: bool = False
    serving: frozenset[ModelName] = frozenset()

    def is_moving(self) -> bool:
        """Tell whether something is downloaded, loaded or unloaded."""
        return any(row.state in _MOVING for row in self.rows.values())


def parse_sync_status(data: bytes | None, listed: tuple[int, ...]) -> SyncStatus | None:
    """Parse the file's content; None when there is none or nobody can read it.

    `listed` is the signature of the model config as it is now.
    """
    try:
        value = json.loads(data) if data is not None else None
    except ValueError:
        return None
    models = value.get("models") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(models, dict):
        return None
    rows = {
        ModelName(name): _parse_row(row) for name, row in models.items() if isinstance(row, dict)
    }
    return SyncStatus(
        rows=rows,
        problem=str(value.get("problem") or ""),
        is_outdated=value.get("list") != list(listed),
        serving=_names(value.get("serving")),
    )


def merge(indexed: _Answer, status: SyncStatus | None, model: ModelName) -> _Answer:
    """Return the state of a model with its reason, from the index's answer and the file.

    READY is the engine's word, unless model-sync has seen that the model is dead (ADR 0019). A
    permanent failure is FAILED with its plain reason; what model-sync still works at is LOADING,
    also where the index shows an earlier failure. A failure counts once model-sync has read the
    model config as it is: before, it may be about an earlier entry of the same model.
    """
    state, reason = indexed[0], plain_reason(indexed[1])
    row = status.rows.get(model) if status is not None else None
    if row is not None and row.state == DEAD:
        return LoadState.FAILED, row.reason
    if state is LoadState.READY or status is None:
        return state, reason
    if row is None:
        return _unseen(state, reason, status)
    if row.permanent and row.state in _FAILURES:
        if status.is_outdated:
            return LoadState.LOADING, "model-sync has not read the changed model config yet"
        return LoadState.FAILED, row.reason or reason
    return _progress(state, reason, row)


def plain_reason(reason: str) -> str:
    """Return what model-sync has to say in an engine's reason, which is all else as it is.

    Model-sync shows a failure as a model whose backend is named after it, so the engine wraps it
    in its own sentence about backends.
    """
    _, mark, rest = reason.partition(_STAND_IN)
    if not mark:
        return reason
    said, mark, _ = rest.rpartition(_STAND_IN_END)
    return said if mark else rest.rstrip("'")


def _unseen(state: LoadState, reason: str, status: SyncStatus) -> _Answer:
    """Answer for a model that model-sync does not know: what the index has is about the past."""
    if status.problem:
        return LoadState.LOADING, f"model-sync: {status.problem}"
    if state is LoadState.FAILED:
        return LoadState.LOADING, "model-sync has not seen it yet"
    return state, reason


def _progress(state: LoadState, reason: str, row: SyncRow) -> _Answer:
    match row.state:
        case "DOWNLOADING":
            again = f"; before: {row.reason}" if row.reason else ""
            return LoadState.LOADING, f"downloading, {_amount(row)}{again}"
        case "LOADING":
            return LoadState.LOADING, f"loading: {row.reason}" if row.reason else "loading"
        case "DOWNLOAD_FAILED":
            return LoadState.LOADING, f"download failed, it is tried again: {row.reason}"
        case "VERIFY_FAILED" | "LOAD_FAILED":
            return LoadState.LOADING, f"failed, it is tried again: {row.reason}"
        case "UNLOADING":
            return LoadState.LOADING, "an earlier unload is still going on"
        case _:
            return state, reason


def _amount(row: SyncRow) -> str:
    """Return `12 of 340 MiB`, or what is there when the whole is not known."""
    size, unit = next(
        (one for one in _UNITS if max(row.bytes_total, row.bytes_done) >= one[0]), _UNITS[-1]
    )
    done = row.bytes_done // size
    return f"{done} of {row.bytes_total // size} {unit}" if row.bytes_total else f"{done} {unit}"


def _parse_row(row: Mapping[str, Any]) -> SyncRow:
    return SyncRow(
        state=str(row.get("state") or ""),
        reason=" ".join(str(row.get("reason") or "").split()),
        permanent=row.get("permanent") is True,
        stuck=str(row.get("stuck") or ""),
        bytes_done=_count(row.get("bytes_done")),
        bytes_total=_count(row.get("bytes_total")),
    )


def _names(value: object) -> frozenset[ModelName]:
    return frozenset(map(ModelName, map(str, value))) if isinstance(value, list) else frozenset()


def _count(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0


_MOVING = ("DOWNLOADING", "LOADING", "UNLOADING")
_FAILURES = ("DOWNLOAD_FAILED", "VERIFY_FAILED", "LOAD_FAILED")
