"""Where a build may look at requests of one kind: before they happen, and after they succeeded."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from maserve.base.errors import Problem
from maserve.base.keys import Key
from maserve.resource import R, Resource

R_contra = TypeVar("R_contra", bound=Resource, contravariant=True)


class Hooks(Protocol[R_contra]):
    """Called in registration order; an error of a `before_` hook ends the request with that error.

    `resource` is the request's own copy: a hook may change it. With `dry_run` a hook must have no
    effect outside. Hooks may be called for requests that then fail.
    """

    async def before_create(self, resource: R_contra, *, dry_run: bool) -> None:
        """Look at a valid object that is about to be stored."""
        ...

    async def before_update(self, resource: R_contra, stored: R_contra, *, dry_run: bool) -> None:
        """Look at a valid object that is about to replace `stored`, which must not be changed."""
        ...

    async def before_delete(self, key: Key, *, dry_run: bool) -> None: ...

    async def before_delete_collection(self, namespace: str, *, dry_run: bool) -> None: ...

    async def on_get_success(self, resource: R_contra) -> None: ...

    async def on_list_success(self, resources: Sequence[R_contra]) -> None: ...

    async def on_delete_success(self, key: Key, *, dry_run: bool) -> None: ...

    async def on_delete_collection_success(self, namespace: str, *, dry_run: bool) -> None: ...


class NoHooks(Generic[R]):
    """Does nothing at any point; a start for hooks that care about a few."""

    async def before_create(self, resource: R, *, dry_run: bool) -> None:
        """Do nothing."""

    async def before_update(self, resource: R, stored: R, *, dry_run: bool) -> None:
        """Do nothing."""

    async def before_delete(self, key: Key, *, dry_run: bool) -> None:
        """Do nothing."""

    async def before_delete_collection(self, namespace: str, *, dry_run: bool) -> None:
        """Do nothing."""

    async def on_get_success(self, resource: R) -> None:
        """Do nothing."""

    async def on_list_success(self, resources: Sequence[R]) -> None:
        """Do nothing."""

    async def on_delete_success(self, key: Key, *, dry_run: bool) -> None:
        """Do nothing."""

    async def on_delete_collection_success(self, namespace: str, *, dry_run: bool) -> None:
        """Do nothing."""


Validator = Callable[[Any], Iterable[Problem]]
"""Yields what a build's own rules find wrong with a resource of one kind. Pure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extensions:
    """What a build adds, by kind: rules that run after the stock ones, then hooks in order."""

    hooks: Mapping[type[Resource], Sequence[Hooks[Any]]] = field(default_factory=dict)
    validators: Mapping[type[Resource], Sequence[Validator]] = field(default_factory=dict)

    def hooks_of(self, kind: type[Resource]) -> Sequence[Hooks[Any]]:
        return self.hooks.get(kind, ())

    def problems_of(self, resource: Resource) -> Iterable[Problem]:
        """Yield what the added rules find wrong."""
        for validator in self.validators.get(type(resource), ()):
            yield from validator(resource)
