"""The part of the store's contract about deleting, finalizers and owners."""
# ruff: noqa: S101 - a suite of tests

import pytest

from maserve.base.errors import Conflict, Exists, Invalid, NotFound
from maserve.base.keys import Key
from maserve.resource import key_of
from maserve.store import Preconditions, Store
from maserve.testing.clock import EPOCH, FakeClock
from maserve.testing.store_cases import StoreCase, a_model, described, held, owned_by
from maserve.wire import v2

KEY = Key("prod", "m")


class StoreDeletes(StoreCase):
    """Deleting, with and without finalizers."""

    async def test_delete_removes_at_once_without_finalizers(self, store: Store) -> None:
        await store.create(a_model())
        await store.delete(v2.Model, KEY)
        assert await store.find(v2.Model, KEY) is None
        with pytest.raises(NotFound):
            await store.delete(v2.Model, KEY)

    async def test_finalizers_hold_a_deleted_object(self, store: Store, clock: FakeClock) -> None:
        made = await store.create(held(a_model(), "a/b"))
        clock.advance(60)
        await store.delete(v2.Model, KEY)
        marked = await store.get(v2.Model, KEY)
        assert marked.metadata.deletionTimestamp.seconds == int(EPOCH.timestamp()) + 60
        assert marked.metadata.deletionGracePeriodSeconds == 0
        assert marked.metadata.generation == 2
        assert marked.metadata.uid == made.metadata.uid

    async def test_a_second_delete_changes_nothing(self, store: Store, clock: FakeClock) -> None:
        await store.create(held(a_model(), "a/b"))
        await store.delete(v2.Model, KEY)
        marked = await store.get(v2.Model, KEY)
        clock.advance(60)
        await store.delete(v2.Model, KEY)
        assert await store.get(v2.Model, KEY) == marked

    async def test_the_last_finalizer_removed_removes_the_object(self, store: Store) -> None:
        await store.create(held(a_model(), "a/b", "c/d"))
        await store.delete(v2.Model, KEY)
        one_left = await store.update(held(await store.get(v2.Model, KEY), "c/d"))
        last = await store.update(held(one_left))
        assert int(last.metadata.resourceVersion) > int(one_left.metadata.resourceVersion)
        assert await store.find(v2.Model, KEY) is None

    async def test_finalizers_of_a_deleted_object_only_shrink(self, store: Store) -> None:
        await store.create(held(a_model(), "a/b"))
        await store.delete(v2.Model, KEY)
        marked = await store.get(v2.Model, KEY)
        with pytest.raises(Invalid) as caught:
            await store.update(held(marked, "a/b", "new/one"))
        assert caught.value.problems[0].field == "metadata.finalizers"

    async def test_the_spec_of_a_deleted_object_may_change(self, store: Store) -> None:
        await store.create(held(a_model(), "a/b"))
        await store.delete(v2.Model, KEY)
        updated = await store.update(described(await store.get(v2.Model, KEY), "new"))
        assert updated.metadata.generation == 3
        assert updated.metadata.HasField("deletionTimestamp")

    async def test_a_name_is_taken_while_finalizers_hold_it(self, store: Store) -> None:
        await store.create(held(a_model(), "a/b"))
        await store.delete(v2.Model, KEY)
        with pytest.raises(Exists):
            await store.create(a_model())

    async def test_a_name_used_again_is_another_object(self, store: Store) -> None:
        first = await store.create(a_model())
        await store.delete(v2.Model, KEY)
        second = await store.create(a_model())
        assert second.metadata.uid != first.metadata.uid
        assert int(second.metadata.resourceVersion) > int(first.metadata.resourceVersion) + 1

    async def test_preconditions_guard_a_delete(self, store: Store) -> None:
        made = await store.create(a_model())
        with pytest.raises(Conflict):
            await store.delete(v2.Model, KEY, preconditions=Preconditions(uid="another"))
        with pytest.raises(Conflict):
            await store.delete(v2.Model, KEY, preconditions=Preconditions(version="99"))
        right = Preconditions(uid=made.metadata.uid, version=made.metadata.resourceVersion)
        await store.delete(v2.Model, KEY, preconditions=right)
        assert await store.find(v2.Model, KEY) is None

    async def test_a_dry_delete_deletes_nothing(self, store: Store) -> None:
        await store.create(a_model())
        await store.delete(v2.Model, KEY, dry_run=True)
        assert await store.find(v2.Model, KEY) is not None
        with pytest.raises(NotFound):
            await store.delete(v2.Model, Key("prod", "none"), dry_run=True)


class StoreOwners(StoreCase):
    """Garbage collection by owner."""

    async def test_dependents_go_with_their_last_owner(self, store: Store) -> None:
        first, second = [await store.create(a_model(name)) for name in ("o1", "o2")]
        await store.create(owned_by(a_model("child"), first, second))
        await store.delete(v2.Model, key_of(first))
        assert await store.find(v2.Model, Key("prod", "child")) is not None
        await store.delete(v2.Model, key_of(second))
        assert await store.find(v2.Model, Key("prod", "child")) is None

    async def test_dependents_of_dependents_go_too(self, store: Store) -> None:
        top = await store.create(a_model("top"))
        middle = await store.create(owned_by(a_model("middle"), top))
        await store.create(owned_by(a_model("leaf"), middle))
        await store.delete(v2.Model, key_of(top))
        assert (await store.list(v2.Model)).items == ()

    async def test_a_dependent_with_finalizers_is_marked(self, store: Store) -> None:
        top = await store.create(a_model("top"))
        child = await store.create(owned_by(held(a_model("child"), "a/b"), top))
        await store.delete(v2.Model, key_of(top))
        marked = await store.get(v2.Model, key_of(child))
        assert marked.metadata.HasField("deletionTimestamp")

    async def test_dependents_wait_while_finalizers_hold_the_owner(self, store: Store) -> None:
        top = await store.create(held(a_model("top"), "a/b"))
        child = await store.create(owned_by(a_model("child"), top))
        await store.delete(v2.Model, key_of(top))
        assert await store.find(v2.Model, key_of(child)) is not None
        await store.update(held(await store.get(v2.Model, key_of(top))))
        assert await store.find(v2.Model, key_of(child)) is None

    async def test_a_new_owner_of_the_same_name_keeps_nobody(self, store: Store) -> None:
        top = await store.create(a_model("top"))
        await store.create(owned_by(a_model("child"), top))
        await store.delete(v2.Model, key_of(top))
        await store.create(a_model("top"))
        assert await store.find(v2.Model, Key("prod", "child")) is None

    async def test_a_new_object_of_a_lost_owner_does_not_stay(self, store: Store) -> None:
        top = await store.create(a_model("top"))
        await store.delete(v2.Model, key_of(top))
        await store.create(owned_by(a_model("child"), top))
        assert await store.find(v2.Model, Key("prod", "child")) is None

    async def test_an_owner_in_another_namespace_counts_as_lost(self, store: Store) -> None:
        top = await store.create(a_model("top", namespace="elsewhere"))
        await store.create(owned_by(a_model("child"), top))
        assert await store.find(v2.Model, Key("prod", "child")) is None

    async def test_an_owner_that_is_not_kept_here_counts_as_present(self, store: Store) -> None:
        child = a_model("child")
        child.metadata.ownerReferences.add(
            apiVersion="apps/v1", kind="Deployment", name="x", uid="u"
        )
        await store.create(child)
        assert await store.find(v2.Model, Key("prod", "child")) is not None

    async def test_an_incomplete_owner_is_invalid(self, store: Store) -> None:
        child = a_model("child")
        child.metadata.ownerReferences.add(kind="Model", name="top")
        with pytest.raises(Invalid) as caught:
            await store.create(child)
        assert [each.field for each in caught.value.problems] == [
            "metadata.ownerReferences[0].apiVersion",
            "metadata.ownerReferences[0].uid",
        ]
