"""The port to where resources are kept."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, Protocol

from maserve.base.keys import Key
from maserve.resource.kinds import R


class ChangeType(StrEnum):
    """What happened to an object; SYNCED ends the objects that were there when a watch began."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    SYNCED = "SYNCED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change(Generic[R]):
    """One step of an object's history.

    `object` is the state after the change (for DELETED the last state, with the version of the
    deletion; for SYNCED None). `version` is the store's version at that step.
    """

    type: ChangeType
    object: R | None
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[R]):
    """Part of a list. `version` is where a watch goes on; `next` continues the list, "" at its end.

    `remaining` counts what follows, None when a selector makes it unknown.
    """

    items: tuple[R, ...]
    version: str
    next: str = ""
    remaining: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What a list holds: one namespace (empty: all), label and field selectors, a page.

    Selectors are in Kubernetes syntax; bad syntax is `Invalid`. `limit` 0 means everything.
    """

    namespace: str = ""
    labels: str = ""
    fields: str = ""
    limit: int = 0
    next: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preconditions:
    """What must be true of the stored object for a delete, else `Conflict`; empty: anything."""

    uid: str = ""
    version: str = ""


class Store(Protocol):
    """Resources with versions. All answers are the caller's own copies.

    Every write makes one new version, greater than every earlier one. Deletion of an object with
    finalizers only sets `deletionTimestamp`; it goes when the last finalizer is removed. Objects
    whose owners (by uid, in their namespace) are all gone are deleted too; owners of kinds that are
    not kept here count as present.
    """

    async def create(self, resource: R, *, dry_run: bool = False) -> R:
        """Store a new object; uid, version, generation 1 and creation time are set, no status.

        Raises `Exists`, `Invalid` (no name or namespace, a version given).
        """
        ...

    async def get(self, kind: type[R], key: Key) -> R:
        """Return the newest state. Raises `NotFound`."""
        ...

    async def find(self, kind: type[R], key: Key) -> R | None:
        """Return the newest state, None when there is none."""
        ...

    async def list(self, kind: type[R], selection: Selection | None = None) -> Page[R]:
        """Return objects by namespace and name.

        Raises `Invalid` for bad selectors, `Expired` for a continuation that is too old.
        """
        ...

    async def update(self, resource: R, *, dry_run: bool = False) -> R:
        """Replace metadata and spec; status stays. The version must be the stored one.

        `generation` grows only when the spec changed. An update that changes nothing makes no
        version.
        Removing the last finalizer of a deleted object removes the object.
        Raises `Conflict` (stale version, other uid), `NotFound`, `Invalid` (no version, new
        finalizers on a deleted object).
        """
        ...

    async def update_status(self, resource: R) -> R:
        """Replace status only; the version must be the stored one. Raises as `update`."""
        ...

    async def delete(
        self,
        kind: type[R],
        key: Key,
        *,
        preconditions: Preconditions | None = None,
        dry_run: bool = False,
    ) -> None:
        """Delete or, with finalizers, mark as deleted (once). Raises `NotFound`, `Conflict`."""
        ...

    def watch(self, kind: type[R], *, since: str = "") -> AsyncIterator[Change[R]]:
        """Yield changes after version `since`; without it all objects, SYNCED, then changes.

        A slow reader may see several changes of one object as one. Raises `Expired` when history
        no longer reaches back to `since`.
        """
        ...
