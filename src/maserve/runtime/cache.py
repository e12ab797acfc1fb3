"""What an informer holds: the newest known state of each object, without a loop."""

from collections.abc import Callable, Collection, Hashable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from maserve.base.keys import Key
from maserve.resource.kinds import R
from maserve.resource.metadata import is_deleting, key_of

V = TypeVar("V", bound=Hashable)

_REMEMBERED_DELETIONS = 4096
"""How many deleted uids are kept in mind; a late answer to an own write comes within seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition(Generic[R]):
    """An object before and after: None before it was there, None after it is gone.

    Another uid in `new` than in `old` means: deleted and created again. Both the same object means:
    nothing happened, look anyway.
    """

    old: R | None
    new: R | None


class Index(Generic[V, R]):
    """Objects by some value of theirs, such as what they refer to."""

    def __init__(self, values: Callable[[R], Iterable[V]]) -> None:
        self._values = values
        self._keys: dict[V, dict[Key, R]] = {}

    def list(self, value: V) -> tuple[R, ...]:
        """Return the objects that have `value`, by namespace and name."""
        found = self._keys.get(value, {})
        return tuple(found[key] for key in sorted(found))

    def replace(self, old: R | None, new: R | None) -> None:
        """Forget the values of `old` and take those of `new`."""
        if old is not None:
            for value in self._values(old):
                self._drop(value, key_of(old))
        if new is not None:
            for value in self._values(new):
                self._keys.setdefault(value, {})[key_of(new)] = new

    def _drop(self, value: V, key: Key) -> None:
        having = self._keys.get(value, {})
        having.pop(key, None)
        if not having:
            self._keys.pop(value, None)


class Cache(Generic[R]):
    """Newest known states by key. States come in any order; an older one never replaces a newer."""

    def __init__(self) -> None:
        self._objects: dict[Key, R] = {}
        self._deleted: dict[str, None] = {}
        self._indexes: list[Index[Any, R]] = []
        self._complete_to = 0

    def find(self, key: Key) -> R | None:
        return self._objects.get(key)

    def list(self, namespace: str = "") -> tuple[R, ...]:
        """Return the objects of one namespace, or of all, by namespace and name."""
        keys = (key for key in self._objects if namespace in ("", key.namespace))
        return tuple(self._objects[key] for key in sorted(keys))

    def index(self, values: Callable[[R], Iterable[V]]) -> Index[V, R]:
        """Return an index that is kept up to date."""
        index = Index(values)
        for resource in self._objects.values():
            index.replace(None, resource)
        self._indexes.append(index)
        return index

    def observe(self, resource: R) -> Transition[R] | None:
        """Take over the answer to an own write, unless a listing since then no longer had it."""
        known = key_of(resource) in self._objects
        if not known and _version(resource) <= self._complete_to:
            return None
        return self.put(resource)

    def put(self, resource: R) -> Transition[R] | None:
        """Take a state over if it is newer than the one here; None if it is not.

        A state that is marked as deleted and that no finalizer holds means that the object is gone.
        """
        if is_deleting(resource) and not resource.metadata.finalizers:
            return self.remove(resource, resource.metadata.resourceVersion)
        old = self._objects.get(key_of(resource))
        if resource.metadata.uid in self._deleted:
            return None
        if old is not None and _version(old) >= _version(resource):
            return None
        return self._replace(key_of(resource), old, resource)

    def remove(self, resource: R, version: str) -> Transition[R] | None:
        """Forget an object that was deleted at `version`; None if another has taken its place."""
        self._bury(resource.metadata.uid)
        old = self._objects.get(key_of(resource))
        if old is None:
            return None
        if old.metadata.uid != resource.metadata.uid and _version(old) > int(version):
            return None
        return self._replace(key_of(resource), old, None)

    def retain(self, keys: Collection[Key], version: str) -> tuple[Transition[R], ...]:
        """Forget what a listing at `version` did not hold, except what is newer than it."""
        self._complete_to = int(version)
        gone = [
            resource
            for key, resource in self._objects.items()
            if key not in keys and _version(resource) <= self._complete_to
        ]
        for resource in gone:
            self._bury(resource.metadata.uid)
        return tuple(self._replace(key_of(old), old, None) for old in sorted(gone, key=key_of))

    def _bury(self, uid: str) -> None:
        """Remember that this uid is gone for good."""
        self._deleted[uid] = None
        if len(self._deleted) > _REMEMBERED_DELETIONS:
            del self._deleted[next(iter(self._deleted))]

    def _replace(self, key: Key, old: R | None, new: R | None) -> Transition[R]:
        if new is None:
            self._objects.pop(key, None)
        else:
            self._objects[key] = new
        for index in self._indexes:
            index.replace(old, new)
        return Transition(old=old, new=new)


def _version(resource: Any) -> int:
    """Return the version as a number; stores count up, and so does Kubernetes within a kind."""
    return int(resource.metadata.resourceVersion or 0)
