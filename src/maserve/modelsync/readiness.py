"""The file that the model-aware readiness probe reads (architecture 5.7)."""

from pathlib import Path

from maserve.base.errors import Invalid
from maserve.base.keys import ModelName
from maserve.host.files import find_json, remove_file, write_json
from maserve.modelsync.types import Readiness


def find_readiness(path: Path) -> Readiness | None:
    """Return what the file requires, None when there is none or it cannot be understood."""
    try:
        value = find_json(path)
    except Invalid:
        return None
    if not isinstance(value, dict):
        return None
    required, pending = value.get("required", []), value.get("pending", [])
    if not isinstance(required, list) or not isinstance(pending, list):
        return None
    return Readiness(required=_names(required), pending=_names(pending))


def store_readiness(path: Path, before: Readiness | None, after: Readiness | None) -> None:
    """Write or remove the file if it changed. Raises `Unavailable` naming the path."""
    if after == before:
        return
    if after is None:
        remove_file(path)
    else:
        write_json(path, {"required": list(after.required), "pending": list(after.pending)})


def _names(values: list[object]) -> tuple[ModelName, ...]:
    return tuple(ModelName(str(value)) for value in values)
