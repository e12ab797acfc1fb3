"""The part of the store's contract about watches."""
# ruff: noqa: S101 - a suite of tests

import pytest

from maserve.base.errors import Expired, Invalid
from maserve.base.keys import Key
from maserve.resource import key_of
from maserve.store import ChangeType, Store
from maserve.testing.store_cases import (
    StoreCase,
    a_model,
    age,
    described,
    held,
    owned_by,
    take,
    told,
    watching,
)
from maserve.wire import v2

KEY = Key("prod", "m")


class StoreWatches(StoreCase):
    """Watching, from the beginning and from a version."""

    async def test_a_watch_begins_with_what_is_there(self, store: Store) -> None:
        made = await store.create(a_model("a"))
        await store.create(a_model("b"))
        async with watching(store, v2.Model) as changes:
            first = await take(changes, 3)
        assert told(first) == [("ADDED", "a"), ("ADDED", "b"), ("SYNCED", "")]
        assert first[0].object == made
        assert first[2].version == (await store.list(v2.Model)).version

    async def test_a_watch_tells_changes_in_order(self, store: Store) -> None:
        async with watching(store, v2.Model) as changes:
            await take(changes, 1)
            made = await store.create(held(a_model(), "a/b"))
            updated = await store.update(described(made, "new"))
            await store.delete(v2.Model, KEY)
            await store.update(held(await store.get(v2.Model, KEY)))
            seen = await take(changes, 4)
        assert told(seen) == [
            ("ADDED", "m"),
            ("MODIFIED", "m"),
            ("MODIFIED", "m"),
            ("DELETED", "m"),
        ]
        assert [each.object for each in seen[:2]] == [made, updated]

    async def test_a_deletion_tells_the_last_state_at_its_own_version(self, store: Store) -> None:
        made = await store.create(held(a_model(), "a/b"))
        await store.delete(v2.Model, KEY)
        await store.update(held(described(await store.get(v2.Model, KEY), "last")))
        since = made.metadata.resourceVersion
        async with watching(store, v2.Model, since=since) as changes:
            _, deleted = await take(changes, 2)
        assert deleted.type is ChangeType.DELETED
        assert deleted.object is not None
        assert deleted.object.spec.description == "last"
        assert not deleted.object.metadata.finalizers
        assert deleted.object.metadata.resourceVersion == deleted.version

    async def test_a_watch_goes_on_from_a_version(self, store: Store) -> None:
        first = await store.create(a_model("a"))
        await store.create(a_model("b"))
        since = first.metadata.resourceVersion
        async with watching(store, v2.Model, since=since) as changes:
            assert told(await take(changes, 1)) == [("ADDED", "b")]
            await store.delete(v2.Model, Key("prod", "a"))
            assert told(await take(changes, 1)) == [("DELETED", "a")]

    async def test_a_name_used_again_is_told_as_two_objects(self, store: Store) -> None:
        made = await store.create(a_model())
        await store.delete(v2.Model, KEY)
        again = await store.create(a_model())
        since = made.metadata.resourceVersion
        async with watching(store, v2.Model, since=since) as changes:
            seen = await take(changes, 2)
        assert [each.type for each in seen] == [ChangeType.DELETED, ChangeType.ADDED]
        assert [each.object.metadata.uid for each in seen if each.object is not None] == [
            made.metadata.uid,
            again.metadata.uid,
        ]

    async def test_other_kinds_are_not_told(self, store: Store) -> None:
        async with watching(store, v2.ModelFamily) as changes:
            await take(changes, 1)
            await store.create(a_model())
            family = v2.ModelFamily()
            family.metadata.namespace, family.metadata.name = "prod", "f"
            await store.create(family)
            assert told(await take(changes, 1)) == [("ADDED", "f")]

    async def test_collected_dependents_are_told_after_their_owner(self, store: Store) -> None:
        top = await store.create(a_model("top"))
        child = await store.create(owned_by(a_model("child"), top))
        await store.delete(v2.Model, key_of(top))
        since = child.metadata.resourceVersion
        async with watching(store, v2.Model, since=since) as changes:
            assert told(await take(changes, 2)) == [("DELETED", "top"), ("DELETED", "child")]

    async def test_a_slow_reader_misses_no_object(self, store: Store) -> None:
        async with watching(store, v2.Model) as changes:
            await take(changes, 1)
            made = [await store.create(a_model(f"m{number}")) for number in range(10)]
            assert [each.object for each in await take(changes, 10)] == made

    async def test_two_watches_are_independent(self, store: Store) -> None:
        async with (
            watching(store, v2.Model) as one,
            watching(store, v2.Model) as other,
        ):
            await take(one, 1)
            await store.create(a_model())
            assert told(await take(one, 1)) == [("ADDED", "m")]
            assert told(await take(other, 2)) == [("ADDED", "m"), ("SYNCED", "")]

    async def test_a_version_that_history_has_lost_is_expired(self, store: Store) -> None:
        made = await store.create(a_model())
        await age(store, made, self.history_changes + 1)
        async with watching(store, v2.Model, since=made.metadata.resourceVersion) as changes:
            with pytest.raises(Expired):
                await anext(changes)

    async def test_a_quiet_kind_does_not_expire(self, store: Store) -> None:
        family = v2.ModelFamily()
        family.metadata.namespace, family.metadata.name = "prod", "f"
        since = (await store.create(family)).metadata.resourceVersion
        await age(store, await store.create(a_model()), self.history_changes + 1)
        async with watching(store, v2.ModelFamily, since=since) as changes:
            await store.delete(v2.ModelFamily, key_of(family))
            assert told(await take(changes, 1)) == [("DELETED", "f")]

    async def test_a_version_from_the_future_is_expired(self, store: Store) -> None:
        async with watching(store, v2.Model, since="999") as changes:
            with pytest.raises(Expired):
                await anext(changes)

    async def test_a_version_that_is_no_number_is_invalid(self, store: Store) -> None:
        async with watching(store, v2.Model, since="new") as changes:
            with pytest.raises(Invalid):
                await anext(changes)
