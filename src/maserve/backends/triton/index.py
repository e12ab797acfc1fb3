"""What Triton's repository index says about models (behaviour 4.3). Pure."""

import json
from collections.abc import Iterable
from dataclasses import dataclass

from maserve.backends.types import LoadState
from maserve.base.errors import Unavailable
from maserve.base.keys import ModelName

UNLOADED = "unloaded"
"""The reason Triton gives for a model that was unloaded on purpose."""

_RANK = {LoadState.READY: 0, LoadState.FAILED: 1, LoadState.LOADING: 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexRow:
    """One version of one model; `state` is empty for a model that was never loaded."""

    name: str
    version: str = ""
    state: str = ""
    reason: str = ""


def parse_index(body: bytes) -> tuple[IndexRow, ...]:
    """Parse the answer of `POST /v2/repository/index`, sorted by name and version.

    Raises `Unavailable` for anything else than a list of models: it is not Triton that answered.
    """
    try:
        rows = json.loads(body)
    except ValueError as error:
        raise Unavailable(f"repository index is not JSON: {error}") from error
    if not isinstance(rows, list):
        raise Unavailable("repository index is not a list")
    return tuple(sorted((_parse_row(row) for row in rows), key=lambda r: (r.name, r.version)))


def model_state(rows: Iterable[IndexRow], model: ModelName) -> tuple[LoadState, str]:
    """Return the state of a model with its reason; READY beats FAILED beats LOADING."""
    found = [_row_state(row) for row in rows if row.name == model]
    if not found:
        return LoadState.LOADING, "model not in repository"
    return min(found, key=lambda one: _RANK[one[0]])


def is_moving(rows: Iterable[IndexRow]) -> bool:
    """Tell whether some model is being loaded or unloaded."""
    return any(row.state in ("LOADING", "UNLOADING") for row in rows)


def _row_state(row: IndexRow) -> tuple[LoadState, str]:
    match row.state:
        case "READY":
            return LoadState.READY, ""
        case "LOADING" | "UNLOADING":
            return LoadState.LOADING, row.state.lower()
        case "UNAVAILABLE" if row.reason not in ("", UNLOADED):
            return LoadState.FAILED, row.reason
        case "UNAVAILABLE":
            return LoadState.LOADING, UNLOADED
        case "":
            return LoadState.LOADING, "model not yet loaded"
        case other:
            return LoadState.LOADING, f"unknown state {other}"


def _parse_row(row: object) -> IndexRow:
    if not isinstance(row, dict) or not row.get("name"):
        raise Unavailable("repository index has a row without a name")
    # One line each: a reason may be a whole traceback, and people read it in tables and sentences.
    texts = {
        key: " ".join(str(row.get(key) or "").split())
        for key in ("name", "version", "state", "reason")
    }
    return IndexRow(**texts)
