"""What differs between two states of a resource, for decisions and for people."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from maserve.resource.codec import to_shown_json
from maserve.resource.kinds import R

_BOOKKEEPING = ("resourceVersion", "generation", "managedFields")


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One field that differs. None stands for a field that is not set; values are JSON."""

    path: str
    before: Any
    after: Any

    def __str__(self) -> str:
        return f"{self.path}: {_spell(self.before)} → {_spell(self.after)}"


def list_changed_parts(before: R, after: R) -> tuple[str, ...]:
    """Return which of `metadata`, `spec`, `status` differ; the store's bookkeeping aside."""
    return tuple(
        part
        for part in ("metadata", "spec", "status")
        if _part_bytes(before, part) != _part_bytes(after, part)
    )


def list_differences(before: R, after: R) -> tuple[Difference, ...]:
    """Return the fields that differ, by path, without the store's bookkeeping.

    Lists are compared by position. Raises `Invalid` for what has no JSON form.
    """
    return tuple(_compare(_plain(before), _plain(after), ""))


def _part_bytes(resource: R, part: str) -> bytes:
    copy = type(resource)()
    copy.CopyFrom(resource)  # type: ignore[arg-type]  # same class by construction
    for name in _BOOKKEEPING:
        copy.metadata.ClearField(name)  # type: ignore[arg-type]  # each is a field of ObjectMeta
    data: bytes = getattr(copy, part).SerializeToString(deterministic=True)
    return data


def _plain(resource: R) -> dict[str, Any]:
    data = to_shown_json(resource)
    for name in _BOOKKEEPING:
        data["metadata"].pop(name, None)
    return data


def _compare(before: Any, after: Any, path: str) -> Iterator[Difference]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for name in sorted({*before, *after}):
            place = f"{path}.{name}" if path else name
            yield from _compare(before.get(name), after.get(name), place)
    elif isinstance(before, list) and isinstance(after, list):
        for index in range(max(len(before), len(after))):
            yield from _compare(_at(before, index), _at(after, index), f"{path}[{index}]")
    elif before != after or type(before) is not type(after):
        yield Difference(path=path, before=before, after=after)


def _at(items: list[Any], index: int) -> Any:
    return items[index] if index < len(items) else None


def _spell(value: Any) -> str:
    text = "not set" if value is None else str(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
