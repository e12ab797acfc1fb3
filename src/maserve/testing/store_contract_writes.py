"""The part of the store's contract about creating and updating."""
# ruff: noqa: S101 - a suite of tests

import asyncio

import pytest

from maserve.base.errors import Conflict, Exists, Invalid, NotFound
from maserve.base.keys import Key
from maserve.resource import API_VERSION, clone
from maserve.store import Store
from maserve.testing.clock import EPOCH
from maserve.testing.store_cases import (
    StoreCase,
    a_model,
    described,
)
from maserve.wire import v2

KEY = Key("prod", "m")


class StoreCreates(StoreCase):
    """Creating."""

    async def test_create_fills_in_what_the_store_owns(self, store: Store) -> None:
        given = a_model()
        given.metadata.uid, given.metadata.generation = "mine", 7
        given.status.SetInParent()
        made = await store.create(given)
        assert made.metadata.uid not in {"", "mine"}
        assert made.metadata.generation == 1
        assert made.metadata.creationTimestamp.seconds == int(EPOCH.timestamp())
        assert int(made.metadata.resourceVersion) > 0
        assert (made.type_meta.apiVersion, made.type_meta.kind) == (API_VERSION, "Model")
        assert not made.HasField("status")
        assert await store.get(v2.Model, KEY) == made

    async def test_create_of_what_is_there_already_is_refused(self, store: Store) -> None:
        made = await store.create(a_model())
        with pytest.raises(Exists):
            await store.create(a_model(text="another"))
        assert await store.get(v2.Model, KEY) == made

    async def test_one_name_may_be_used_by_two_kinds(self, store: Store) -> None:
        family = v2.ModelFamily()
        family.metadata.namespace, family.metadata.name = KEY.namespace, KEY.name
        await store.create(a_model())
        await store.create(family)
        assert await store.find(v2.ModelFamily, KEY) is not None

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("name", ""),
            ("namespace", ""),
            ("name", "Upper"),
            ("name", "a/b"),
            ("name", ".."),
            ("name", "50%"),
            ("name", "a" * 254),
            ("namespace", "a.b"),
            ("namespace", "n" * 64),
            ("resourceVersion", "5"),
        ],
    )
    async def test_malformed_metadata_is_refused_naming_the_field(
        self, store: Store, field: str, value: str
    ) -> None:
        wrong = a_model()
        setattr(wrong.metadata, field, value)
        with pytest.raises(Invalid) as caught:
            await store.create(wrong)
        assert [each.field for each in caught.value.problems] == [f"metadata.{field}"]

    async def test_every_problem_is_told_at_once(self, store: Store) -> None:
        wrong = a_model("Bad", namespace="")
        wrong.metadata.labels["no label!"] = "x"
        with pytest.raises(Invalid) as caught:
            await store.create(wrong)
        assert len(caught.value.problems) == 3

    async def test_the_longest_name_is_accepted(self, store: Store) -> None:
        made = await store.create(a_model("a" * 253))
        assert made.metadata.uid

    async def test_an_object_over_the_size_limit_is_refused(self, store: Store) -> None:
        await store.create(a_model("fits", text="x" * 1_500_000))
        with pytest.raises(Invalid, match="too large"):
            await store.create(a_model("m", text="x" * 1_600_000))
        assert await store.find(v2.Model, KEY) is None

    async def test_a_dry_run_stores_nothing(self, store: Store) -> None:
        made = await store.create(a_model(), dry_run=True)
        assert made.metadata.uid
        assert await store.find(v2.Model, KEY) is None
        with pytest.raises(Invalid):
            await store.create(a_model(""), dry_run=True)

    async def test_unknown_fields_are_kept(self, store: Store) -> None:
        newer = v2.Model.FromString(a_model().SerializeToString() + b"\xf8\x3f\x01")
        await store.create(newer)
        stored = await store.get(v2.Model, KEY)
        assert stored.SerializeToString().endswith(b"\xf8\x3f\x01")


class StoreUpdates(StoreCase):
    """Updating objects and their status."""

    async def test_update_replaces_metadata_and_spec_but_not_status(self, store: Store) -> None:
        revision = v2.Revision()
        revision.metadata.namespace, revision.metadata.name = "prod", "r"
        made = await store.create(revision)
        made.status.state = v2.REVISION_STATE_READY
        ready = await store.update_status(made)
        ready.metadata.labels["team"] = "a"
        ready.spec.source = "git"
        ready.ClearField("status")
        updated = await store.update(ready)
        assert updated.metadata.labels["team"] == "a"
        assert updated.spec.source == "git"
        assert updated.status.state == v2.REVISION_STATE_READY

    async def test_status_update_replaces_status_alone(self, store: Store) -> None:
        revision = v2.Revision()
        revision.metadata.namespace, revision.metadata.name = "prod", "r"
        made = await store.create(revision)
        changed = clone(made)
        changed.spec.source = "ignored"
        changed.metadata.labels["ignored"] = "yes"
        changed.status.state = v2.REVISION_STATE_READY
        updated = await store.update_status(changed)
        assert updated.status.state == v2.REVISION_STATE_READY
        assert updated.spec == made.spec
        assert not updated.metadata.labels
        assert updated.metadata.generation == 1

    async def test_generation_grows_with_the_spec_only(self, store: Store) -> None:
        made = await store.create(a_model())
        labelled = clone(made)
        labelled.metadata.labels["a"] = "b"
        labelled = await store.update(labelled)
        assert labelled.metadata.generation == 1
        assert (await store.update(described(labelled, "new"))).metadata.generation == 2

    async def test_every_write_makes_a_greater_version(self, store: Store) -> None:
        first = await store.create(a_model("a"))
        second = await store.create(a_model("b"))
        third = await store.update(described(first, "new"))
        versions = [int(each.metadata.resourceVersion) for each in (first, second, third)]
        assert versions == sorted(set(versions))

    async def test_an_update_that_changes_nothing_makes_no_version(self, store: Store) -> None:
        made = await store.create(a_model())
        assert await store.update(made) == made
        assert await store.update_status(made) == made
        assert (await store.list(v2.Model)).version == made.metadata.resourceVersion

    async def test_a_stale_version_is_a_conflict(self, store: Store) -> None:
        made = await store.create(a_model())
        newer = await store.update(described(made, "new"))
        with pytest.raises(Conflict):
            await store.update(described(made, "late"))
        with pytest.raises(Conflict):
            await store.update_status(made)
        assert await store.get(v2.Model, KEY) == newer

    async def test_another_uid_is_a_conflict(self, store: Store) -> None:
        made = await store.create(a_model())
        await store.delete(v2.Model, KEY)
        again = await store.create(a_model())
        made.metadata.resourceVersion = again.metadata.resourceVersion
        with pytest.raises(Conflict):
            await store.update(made)

    async def test_the_uid_may_be_left_out(self, store: Store) -> None:
        made = described(await store.create(a_model()), "new")
        made.metadata.ClearField("uid")
        assert (await store.update(made)).metadata.uid

    @pytest.mark.parametrize("version", ["", "0", "abc", "-1"])
    async def test_an_update_needs_a_version(self, store: Store, version: str) -> None:
        made = await store.create(a_model())
        made.metadata.resourceVersion = version
        with pytest.raises(Invalid) as caught:
            await store.update(made)
        assert caught.value.problems[0].field == "metadata.resourceVersion"

    async def test_update_of_a_missing_name_is_not_found(self, store: Store) -> None:
        made = await store.create(a_model())
        made.metadata.name = "other"
        with pytest.raises(NotFound):
            await store.update(made)
        with pytest.raises(NotFound):
            await store.update_status(made)

    async def test_update_under_another_existing_name_is_a_conflict(self, store: Store) -> None:
        made = await store.create(a_model("a"))
        await store.create(a_model("b"))
        made.metadata.name = "b"
        with pytest.raises(Conflict):
            await store.update(made)

    async def test_what_the_store_owns_cannot_be_changed(self, store: Store) -> None:
        made = await store.create(a_model())
        changed = described(made, "new")
        changed.metadata.generation = 99
        changed.metadata.creationTimestamp.seconds = 1
        changed.metadata.deletionTimestamp.seconds = 1
        updated = await store.update(changed)
        assert updated.metadata.generation == 2
        assert updated.metadata.creationTimestamp == made.metadata.creationTimestamp
        assert not updated.metadata.HasField("deletionTimestamp")

    async def test_a_dry_update_stores_nothing(self, store: Store) -> None:
        made = await store.create(a_model())
        answer = await store.update(described(made, "new"), dry_run=True)
        assert answer.spec.description == "new"
        assert await store.get(v2.Model, KEY) == made

    async def test_of_many_updates_of_one_version_one_wins(self, store: Store) -> None:
        made = await store.create(a_model())
        tries = [store.update(described(made, f"by {writer}")) for writer in range(8)]
        outcomes = await asyncio.gather(*tries, return_exceptions=True)
        assert sum(isinstance(each, v2.Model) for each in outcomes) == 1
        assert sum(isinstance(each, Conflict) for each in outcomes) == 7
