"""Resources for tests of stores, and ways to look at what a store tells."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import ClassVar

import pytest

from maserve.resource import API_VERSION, R, Resource, clone, kind_of
from maserve.store import Change, Store
from maserve.testing.clock import FakeClock
from maserve.wire import v2

HISTORY_CHANGES = 20
"""What a store under the contract keeps of its history, unless its case says otherwise."""


class StoreCase:
    """The fixtures that every part of the suite uses; `store` is for the inheriting class."""

    history_changes: ClassVar[int] = HISTORY_CHANGES

    @pytest.fixture
    def clock(self) -> FakeClock:
        return FakeClock()

    @pytest.fixture
    def store(self, clock: FakeClock) -> object:
        raise NotImplementedError("the class that inherits the suite has a fixture `store`")


def a_model(name: str = "m", *, namespace: str = "prod", text: str = "") -> v2.Model:
    """Return a model that no store has seen."""
    model = v2.Model()
    model.metadata.namespace, model.metadata.name = namespace, name
    model.spec.description = text or f"about {name}"
    return model


def owned_by(resource: R, *owners: Resource) -> R:
    """Return a copy of `resource` that names `owners`, which must have been stored."""
    copy = clone(resource)
    for owner in owners:
        copy.metadata.ownerReferences.add(
            apiVersion=API_VERSION,
            kind=kind_of(owner).name,
            name=owner.metadata.name,
            uid=owner.metadata.uid,
        )
    return copy


def held(resource: R, *finalizers: str) -> R:
    """Return a copy of `resource` with these finalizers and no others."""
    copy = clone(resource)
    del copy.metadata.finalizers[:]
    copy.metadata.finalizers.extend(finalizers)
    return copy


def described(model: v2.Model, text: str) -> v2.Model:
    """Return a copy of `model` with another spec."""
    copy = clone(model)
    copy.spec.description = text
    return copy


async def take(changes: AsyncIterator[Change[R]], count: int) -> list[Change[R]]:
    """Return the next `count` changes; the test's own timeout ends a wait for too few."""
    return [await anext(changes) for _ in range(count)]


def told(changes: list[Change[R]]) -> list[tuple[str, str]]:
    """Return what happened to which name; an empty name stands for no object."""
    return [
        (each.type.value, each.object.metadata.name if each.object is not None else "")
        for each in changes
    ]


def names(items: tuple[Resource, ...]) -> list[str]:
    return [f"{item.metadata.namespace}/{item.metadata.name}" for item in items]


async def age(store: Store, model: v2.Model, steps: int) -> None:
    """Change `model` that many times."""
    for step in range(steps):
        model = await store.update(described(model, f"step {step}"))


@asynccontextmanager
async def watching(
    store: Store, kind: type[R], *, since: str = ""
) -> AsyncGenerator[AsyncIterator[Change[R]], None]:
    """Watch within a block; at its end the watch is closed, if it is a generator."""
    changes = store.watch(kind, since=since)
    try:
        yield changes
    finally:
        close = getattr(changes, "aclose", None)
        if close is not None:
            await close()
