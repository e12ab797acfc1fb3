"""Any order of operations, against a dictionary that follows the rules naively."""

import asyncio
import random
import tempfile
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from maserve.base.errors import Conflict, Error, Exists, Expired, NotFound
from maserve.base.keys import Key
from maserve.store import ChangeType, Selection
from maserve.store.sqlite import SqliteStore, StoreSettings
from maserve.testing.clock import FakeClock
from maserve.testing.store_cases import a_model, described, held, owned_by
from maserve.wire import v2

NAMES = st.sampled_from(["a", "b", "c"])
TEXTS = st.sampled_from(["one", "two"])
HISTORY = 8


@dataclass
class Expected:
    """What the dictionary says of one object."""

    uid: str
    version: int
    generation: int
    text: str
    finalizers: tuple[str, ...]
    owner: str = ""
    is_deleting: bool = False


@dataclass
class Expectation:
    """The dictionary and its version."""

    objects: dict[str, Expected] = field(default_factory=dict)
    version: int = 0

    def step(self) -> int:
        self.version += 1
        return self.version

    def delete(self, name: str) -> None:
        found = self.objects[name]
        if found.finalizers and not found.is_deleting:
            found.is_deleting, found.generation = True, found.generation + 1
            found.version = self.step()
        elif not found.finalizers:
            self.remove(name)

    def remove(self, name: str) -> None:
        gone = self.objects.pop(name)
        self.step()
        for child in sorted(self.objects):
            if child in self.objects and self.objects[child].owner == gone.uid:
                self.delete(child)


class StoreMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.folder = tempfile.TemporaryDirectory()
        self.exit = AsyncExitStack()
        self.expected = Expectation()
        self.open()
        self.read_at = "0"
        self.replayed: dict[str, str] = {}

    def open(self) -> None:
        store = SqliteStore(
            Path(self.folder.name) / "store.db",
            clock=FakeClock(),
            rng=random.Random(self.expected.version),
            settings=StoreSettings(history_changes=HISTORY),
        )
        self.store = self.loop.run_until_complete(self.exit.enter_async_context(store))

    def teardown(self) -> None:
        self.loop.run_until_complete(self.exit.aclose())
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()
        self.folder.cleanup()

    def stored(self, name: str) -> v2.Model | None:
        return self.loop.run_until_complete(self.store.find(v2.Model, Key("prod", name)))

    @rule(name=NAMES, text=TEXTS, is_held=st.booleans(), owner=st.none() | NAMES)
    def create(self, name: str, text: str, is_held: bool, owner: str | None) -> None:
        finalizers = ("a/b",) if is_held else ()
        model = held(a_model(name, text=text), *finalizers)
        parent = self.stored(owner) if owner is not None else None
        if parent is not None:
            model = owned_by(model, parent)
        made = self.attempt(
            self.store.create(model), Exists if name in self.expected.objects else None
        )
        if made is not None:
            self.expected.objects[name] = Expected(
                uid=made.metadata.uid,
                version=self.expected.step(),
                generation=1,
                text=text,
                finalizers=finalizers,
                owner=parent.metadata.uid if parent is not None else "",
            )

    @rule(name=NAMES, text=TEXTS, is_stale=st.booleans())
    def update(self, name: str, text: str, is_stale: bool) -> None:
        model = self.stored(name) or a_model(name)
        known = self.expected.objects.get(name)
        model.metadata.resourceVersion = "999999" if is_stale else model.metadata.resourceVersion
        wrong = NotFound if known is None else Conflict if is_stale else None
        updated = self.attempt(self.store.update(described(model, text)), wrong)
        if updated is not None and known is not None and known.text != text:
            known.text, known.generation = text, known.generation + 1
            known.version = self.expected.step()

    @rule(name=NAMES)
    def let_go(self, name: str) -> None:
        model, known = self.stored(name), self.expected.objects.get(name)
        if model is None or known is None:
            return
        self.attempt(self.store.update(held(model)), None)
        if known.finalizers and known.is_deleting:
            self.expected.remove(name)
        elif known.finalizers:
            known.finalizers, known.version = (), self.expected.step()

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        is_there = name in self.expected.objects
        wrong = None if is_there else NotFound
        self.attempt(self.store.delete(v2.Model, Key("prod", name)), wrong)
        if is_there:
            self.expected.delete(name)

    @precondition(lambda self: self.expected.version > 0)
    @rule()
    def reopen(self) -> None:
        self.loop.run_until_complete(self.exit.aclose())
        self.open()

    @rule()
    def follow(self) -> None:
        """Replaying the history must end where a list ends."""
        try:
            self.loop.run_until_complete(self.replay())
        except Expired:
            page = self.loop.run_until_complete(self.store.list(v2.Model))
            self.replayed = {each.metadata.name: each.metadata.uid for each in page.items}
            self.read_at = page.version

    async def replay(self) -> None:
        changes = self.store.watch(v2.Model, since=self.read_at)
        while int(self.read_at) < self.expected.version:
            change = await anext(changes)
            assert change.object is not None
            name, self.read_at = change.object.metadata.name, change.version
            if change.type is ChangeType.DELETED:
                assert self.replayed.pop(name) == change.object.metadata.uid
            else:
                self.replayed[name] = change.object.metadata.uid
        assert self.replayed == {name: each.uid for name, each in self.expected.objects.items()}

    @invariant()
    def lists_what_the_dictionary_says(self) -> None:
        page = self.loop.run_until_complete(self.store.list(v2.Model, Selection(namespace="prod")))
        assert int(page.version) == self.expected.version
        assert [
            Expected(
                uid=each.metadata.uid,
                version=int(each.metadata.resourceVersion),
                generation=each.metadata.generation,
                text=each.spec.description,
                finalizers=tuple(each.metadata.finalizers),
                owner=next((owner.uid for owner in each.metadata.ownerReferences), ""),
                is_deleting=each.metadata.HasField("deletionTimestamp"),
            )
            for each in page.items
        ] == [self.expected.objects[name] for name in sorted(self.expected.objects)]

    def attempt(self, call: object, wrong: type[Error] | None) -> v2.Model | None:
        """Run a call that must fail with `wrong`, or must not fail."""
        if wrong is None:
            return self.loop.run_until_complete(call)  # type: ignore[arg-type]  # a coroutine
        with pytest.raises(wrong):
            self.loop.run_until_complete(call)  # type: ignore[arg-type]  # a coroutine
        return None


StoreMachine.TestCase.settings = settings(max_examples=20, stateful_step_count=25, deadline=None)
TestStoreMachine = pytest.mark.timeout(60)(StoreMachine.TestCase)  # hundreds of commits to a disk
