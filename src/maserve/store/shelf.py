"""Writes on a shelf: rules, removal and garbage collection over any place that keeps objects.

A shelf is one open transaction. Whatever `Writer` does between two calls of its public methods
is kept or undone as one.
"""

import random
import uuid
from dataclasses import dataclass
from typing import Protocol

from maserve.base.clock import Clock
from maserve.base.errors import Conflict, Exists, NotFound
from maserve.base.keys import Key
from maserve.resource import API_VERSION, KINDS, R, Resource, is_deleting, key_of, kind_of
from maserve.store import rules
from maserve.store.protocol import Preconditions

_KIND_NAMES = frozenset(kind.name for kind in KINDS)


class Shelf(Protocol):
    """Where a transaction reads and writes. Every write makes one version, one step of history."""

    def find(self, kind: type[R], key: Key) -> R | None:
        """Return the caller's own copy."""
        ...

    def put(self, resource: Resource, *, is_new: bool) -> None:
        """Keep `resource` under its key; sets the next version in it."""
        ...

    def remove(self, resource: Resource) -> None:
        """Forget the object of that key; sets the next version in `resource`, its last state."""
        ...

    def list_dependents(self, namespace: str, uid: str) -> tuple[tuple[type[Resource], Key], ...]:
        """Return the objects of a namespace that name `uid` as an owner, by kind and name."""
        ...

    def has_uid(self, namespace: str, uid: str) -> bool:
        """Tell whether a namespace holds an object of that uid."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """The write half of `Store` on one shelf; same methods, same errors."""

    shelf: Shelf
    clock: Clock
    rng: random.Random

    def create(self, resource: R, *, dry_run: bool) -> R:
        uid = str(uuid.UUID(int=self.rng.getrandbits(128), version=4))
        new = rules.creation(resource, uid=uid, now=self.clock.now())
        if self.shelf.find(type(resource), key_of(new)) is not None:
            raise Exists(kind_of(new).name, key_of(new))
        if not dry_run:
            self.shelf.put(new, is_new=True)
            self._collect_if_orphaned(new)
        return new

    def update(self, resource: R, *, dry_run: bool) -> R:
        stored = self._get(type(resource), key_of(resource))
        new = rules.replacement(stored, resource)
        if new is None:
            return stored
        if not dry_run and rules.is_finished(new):
            self._remove(new)
        elif not dry_run:
            self.shelf.put(new, is_new=False)
            self._collect_if_orphaned(new)
        return new

    def update_status(self, resource: R) -> R:
        stored = self._get(type(resource), key_of(resource))
        new = rules.status_replacement(stored, resource)
        if new is None:
            return stored
        self.shelf.put(new, is_new=False)
        return new

    def delete(
        self, kind: type[R], key: Key, *, preconditions: Preconditions | None, dry_run: bool
    ) -> None:
        stored = self._get(kind, key)
        _check(stored, preconditions or Preconditions())
        if not dry_run:
            self._delete(stored)

    def collect(self, kind: type[Resource], key: Key) -> None:
        """Delete the object if it has owners and none of them is there."""
        found = self.shelf.find(kind, key)
        if found is not None:
            self._collect_if_orphaned(found)

    def _get(self, kind: type[R], key: Key) -> R:
        stored = self.shelf.find(kind, key)
        if stored is None:
            raise NotFound(kind.DESCRIPTOR.name, key)
        return stored

    def _delete(self, stored: Resource) -> None:
        if not stored.metadata.finalizers:
            self._remove(stored)
            return
        marked = rules.deletion(stored, now=self.clock.now())
        if marked is not None:
            self.shelf.put(marked, is_new=False)

    def _remove(self, last: Resource) -> None:
        """Remove an object, then what it alone owned, and so on; children after their owners."""
        waiting = [last]
        while waiting:
            gone = waiting.pop(0)
            self.shelf.remove(gone)
            for kind, key in self.shelf.list_dependents(gone.metadata.namespace, gone.metadata.uid):
                child = self.shelf.find(kind, key)
                if child is None or not self._is_orphaned(child):
                    continue
                if child.metadata.finalizers:
                    self._delete(child)
                else:
                    waiting.append(child)

    def _collect_if_orphaned(self, resource: Resource) -> None:
        if not is_deleting(resource) and self._is_orphaned(resource):
            found = self.shelf.find(type(resource), key_of(resource))
            self._delete(found if found is not None else resource)

    def _is_orphaned(self, resource: Resource) -> bool:
        """Tell whether it has owners and all are gone. Owners we do not keep count as present."""
        owners = resource.metadata.ownerReferences
        return bool(owners) and not any(
            owner.apiVersion != API_VERSION
            or owner.kind not in _KIND_NAMES
            or self.shelf.has_uid(resource.metadata.namespace, owner.uid)
            for owner in owners
        )


def _check(stored: Resource, wanted: Preconditions) -> None:
    kind, key, meta = kind_of(stored).name, key_of(stored), stored.metadata
    if wanted.uid and wanted.uid != meta.uid:
        raise Conflict(kind, key, f"uid {wanted.uid} was expected, {meta.uid} is stored")
    if wanted.version and wanted.version != meta.resourceVersion:
        detail = f"version {wanted.version} was expected, {meta.resourceVersion} is stored"
        raise Conflict(kind, key, detail)
