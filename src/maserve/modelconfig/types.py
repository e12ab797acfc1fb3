"""The values of a model config, and its JSON form (behaviour 6.1)."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from maserve.base.errors import Invalid, Problem
from maserve.base.keys import ModelName, ReplicaName

NO_REPLICA = ReplicaName("")
"""Stands where an entry is not bound to one replica."""


class Phase(StrEnum):
    """Where an entry belongs (serving guide, Model Config): one replica, all, all and required."""

    CANARY = "canary"
    STAGED = "staged"
    SERVING = "serving"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One model a server should hold. Identity is (`deployment_name`, `name`).

    `phase` keeps an unknown text as it is read, so that writing the list back loses nothing; use
    `is_wanted_on` to judge. `canary_pod` is only set in phase canary.
    """

    name: ModelName
    storage_path: str
    deployment_name: str
    phase: str = Phase.SERVING
    canary_pod: ReplicaName = NO_REPLICA

    def is_wanted_on(self, replica: ReplicaName) -> bool:
        """Tell whether this entry wants its model on `replica`; an unknown phase wants nothing."""
        if self.phase == Phase.CANARY:
            return self.canary_pod == replica
        return self.phase in (Phase.STAGED, Phase.SERVING)


def parse_entries(text: str) -> tuple[Entry, ...]:
    """Parse `model-list.json`, in its order; empty text is an empty list.

    A missing phase is serving. Raises `Invalid` for anything malformed: a list that cannot be read
    must never be overwritten or taken for empty.
    """
    if not text.strip():
        return ()
    try:
        rows = json.loads(text)
    except ValueError as error:
        raise Invalid(Problem("model-list.json", f"is not JSON: {error}")) from error
    if not isinstance(rows, list):
        raise Invalid(Problem("model-list.json", "is not a list"))
    return tuple(_parse_entry(row, index) for index, row in enumerate(rows))


def render_entries(entries: Iterable[Entry]) -> str:
    """Render the list as JSON indented by two, entries in the given order."""
    return json.dumps([_render_entry(entry) for entry in entries], indent=2) + "\n"


def with_entry(entries: tuple[Entry, ...], entry: Entry) -> tuple[Entry, ...]:
    """Return the list with `entry` replaced in place, or appended."""
    if any(_same(entry, old) for old in entries):
        return tuple(entry if _same(entry, old) else old for old in entries)
    return (*entries, entry)


def without_entry(
    entries: tuple[Entry, ...], deployment_name: str, name: ModelName
) -> tuple[Entry, ...]:
    """Return the list without that deployment's own entry; another deployment's stays."""
    return tuple(
        entry for entry in entries if (entry.deployment_name, entry.name) != (deployment_name, name)
    )


def find_entry(entries: Iterable[Entry], deployment_name: str, name: str) -> Entry | None:
    """Return the entry of that deployment and model, None when it is not listed."""
    return next(
        (e for e in entries if (e.deployment_name, e.name) == (deployment_name, name)), None
    )


def promoted(entry: Entry) -> Entry:
    """Return the entry in phase serving."""
    return replace(entry, phase=Phase.SERVING, canary_pod=NO_REPLICA)


def _same(one: Entry, other: Entry) -> bool:
    return (one.deployment_name, one.name) == (other.deployment_name, other.name)


def _parse_entry(row: object, index: int) -> Entry:
    where = f"model-list.json[{index}]"
    if not isinstance(row, dict) or not row.get("name"):
        raise Invalid(Problem(where, "needs a name"))
    texts = {key: row.get(key) or "" for key in _FIELDS}
    wrong = [key for key, value in texts.items() if not isinstance(value, str)]
    if wrong:
        raise Invalid(*(Problem(f"{where}.{key}", "is not a text") for key in wrong))
    return Entry(
        name=ModelName(texts["name"]),
        storage_path=texts["storage_path"],
        deployment_name=texts["deployment_name"],
        phase=texts["phase"] or Phase.SERVING,
        canary_pod=ReplicaName(texts["canary_pod"]),
    )


def _render_entry(entry: Entry) -> dict[str, str]:
    row = {
        "name": str(entry.name),
        "storage_path": entry.storage_path,
        "deployment_name": entry.deployment_name,
        "phase": str(entry.phase),
    }
    return {**row, "canary_pod": str(entry.canary_pod)} if entry.canary_pod else row


_FIELDS = ("name", "storage_path", "deployment_name", "phase", "canary_pod")
