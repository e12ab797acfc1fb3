"""Which models a list of entries wants on one replica."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from maserve.artifacts.uri import content_id
from maserve.base.keys import ModelName, ReplicaName
from maserve.modelconfig.types import Entry, Phase
from maserve.modelsync.types import Wanted

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedList:
    """The models by name, and what is odd about the list, for people."""

    models: Mapping[ModelName, Wanted] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def wanted_on(entries: Iterable[Entry], replica: ReplicaName) -> WantedList:
    """Fold the entries: a model is wanted if any entry wants it here.

    The storage path is that of the first entry that wants it here, so that a canary elsewhere does
    not change what this replica serves. It is serving if any of its entries here is.
    """
    models: dict[ModelName, Wanted] = {}
    warnings: list[str] = []
    for entry in entries:
        if entry.phase not in list(Phase):
            warnings.append(f"{_label(entry)} has the unknown phase {entry.phase!r}: ignored")
        if not entry.is_wanted_on(replica):
            continue
        first = models.get(entry.name)
        serving = entry.phase == Phase.SERVING or (first is not None and first.serving)
        if first is not None and first.storage_path != entry.storage_path:
            warnings.append(f"{_label(entry)} has another storage path than an earlier entry")
        path = first.storage_path if first is not None else entry.storage_path
        models[entry.name] = Wanted(
            storage_path=path, content=content_id(path), serving=serving, fault=_fault(entry.name)
        )
    return WantedList(models=dict(sorted(models.items())), warnings=tuple(warnings))


def _fault(name: str) -> str:
    if _NAME.fullmatch(name):
        return ""
    return f"{name!r} cannot name a model: letters, digits, '.', '_' and '-', at most 200"


def _label(entry: Entry) -> str:
    return f"model {entry.name} of deployment {entry.deployment_name or '(none)'}"
