import pytest

from maserve.base.errors import Unavailable
from maserve.base.keys import Key
from maserve.testing.clock import FakeClock
from maserve.testing.store_cases import a_model, described
from maserve.testing.store_fake import FakeStore, StoreCall
from maserve.wire import v2

KEY = Key("prod", "m")


async def test_a_planned_failure_happens_once_before_anything_is_done() -> None:
    store = FakeStore(clock=FakeClock())
    store.fail_next(Unavailable("down"))
    with pytest.raises(Unavailable, match="down"):
        await store.create(a_model())
    assert store.version == 0
    await store.create(a_model())
    assert store.version == 1


async def test_a_failure_may_wait_for_one_verb() -> None:
    store = FakeStore(clock=FakeClock())
    store.fail_next(Unavailable("down"), verb="update")
    made = await store.create(a_model())
    assert await store.find(v2.Model, KEY) == made
    with pytest.raises(Unavailable):
        await store.update(described(made, "new"))


async def test_a_lost_answer_is_of_a_write_that_was_done() -> None:
    store = FakeStore(clock=FakeClock())
    store.lose_next(Unavailable("timed out"), verb="create")
    with pytest.raises(Unavailable):
        await store.create(a_model())
    assert await store.find(v2.Model, KEY) is not None


async def test_calls_are_recorded_in_order() -> None:
    store = FakeStore(clock=FakeClock())
    await store.create(a_model())
    await store.list(v2.Model)
    await store.delete(v2.Model, KEY)
    assert store.calls == [
        StoreCall(verb="create", kind="Model", namespace="prod", name="m"),
        StoreCall(verb="list", kind="Model"),
        StoreCall(verb="delete", kind="Model", namespace="prod", name="m"),
    ]
