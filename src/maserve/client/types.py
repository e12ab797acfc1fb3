"""What the client gives back beside resources."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Generic

from maserve.resource import R


class ChangeType(StrEnum):
    """What a watch tells; SYNCED ends the objects that were there when it began."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    SYNCED = "SYNCED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change(Generic[R]):
    """One step; `object` is None only for SYNCED. A watch goes on from `version`."""

    type: ChangeType
    object: R | None
    version: str


class Applied(StrEnum):
    """What applying an object did."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """How long one call may take, and how often a lost race is run again."""

    timeout_s: float = 30.0
    attempts: int = 5
