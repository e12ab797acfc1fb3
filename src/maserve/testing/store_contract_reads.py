"""The part of the store's contract about finding and listing."""
# ruff: noqa: S101 - a suite of tests

import pytest

from maserve.base.errors import Expired, Invalid, NotFound
from maserve.base.keys import Key
from maserve.resource import key_of
from maserve.store import Selection, Store
from maserve.testing.store_cases import (
    StoreCase,
    a_model,
    age,
    described,
    names,
)
from maserve.wire import v2

KEY = Key("prod", "m")


class StoreReads(StoreCase):
    """Finding, listing, selecting, paging."""

    async def test_what_is_not_there_is_not_found(self, store: Store) -> None:
        assert await store.find(v2.Model, KEY) is None
        with pytest.raises(NotFound):
            await store.get(v2.Model, KEY)

    async def test_answers_are_copies(self, store: Store) -> None:
        made = await store.create(a_model())
        made.spec.description = "changed by a caller"
        (listed,) = (await store.list(v2.Model)).items
        listed.spec.description = "changed by another"
        assert (await store.get(v2.Model, KEY)).spec.description == "about m"

    async def test_what_was_given_may_be_changed_afterwards(self, store: Store) -> None:
        given = a_model()
        await store.create(given)
        given.spec.description = "changed by the caller"
        assert (await store.get(v2.Model, KEY)).spec.description == "about m"

    async def test_lists_are_ordered_by_namespace_and_name(self, store: Store) -> None:
        for namespace, name in [("b", "a"), ("a", "z"), ("a", "b")]:
            await store.create(a_model(name, namespace=namespace))
        assert names((await store.list(v2.Model)).items) == ["a/b", "a/z", "b/a"]
        assert names((await store.list(v2.Model, Selection(namespace="b"))).items) == ["b/a"]
        assert (await store.list(v2.Model, Selection(namespace="c"))).items == ()

    @pytest.mark.parametrize(
        ("selection", "expected"),
        [
            (Selection(labels="tier=1"), ["prod/a"]),
            (Selection(labels="tier in (1,2),!old"), ["prod/a"]),
            (Selection(labels="tier!=1"), ["prod/b", "prod/c"]),
            (Selection(labels="old"), ["prod/b"]),
            (Selection(fields="metadata.name=c"), ["prod/c"]),
            (Selection(fields="metadata.name!=c,metadata.namespace=prod"), ["prod/a", "prod/b"]),
            (Selection(fields="spec.package_type=DEPLOYABLE_MODEL_PACKAGE_TYPE_RAW"), ["prod/a"]),
            (Selection(fields="spec.packageType=DEPLOYABLE_MODEL_PACKAGE_TYPE_RAW"), ["prod/a"]),
            (Selection(limit=-1), ["prod/a", "prod/b", "prod/c"]),
        ],
        ids=str,
    )
    async def test_selectors_choose(
        self, store: Store, selection: Selection, expected: list[str]
    ) -> None:
        first, second = a_model("a"), a_model("b")
        first.metadata.labels["tier"] = "1"
        first.spec.package_type = v2.DEPLOYABLE_MODEL_PACKAGE_TYPE_RAW
        second.metadata.labels.update({"tier": "2", "old": ""})
        for model in (first, second, a_model("c")):
            await store.create(model)
        assert names((await store.list(v2.Model, selection)).items) == expected

    @pytest.mark.parametrize(
        "selection",
        [
            Selection(labels="a in (b"),
            Selection(labels="=x"),
            Selection(fields="metadata.name"),
            Selection(fields="spec.nothing=1"),
            Selection(next="no token"),
        ],
        ids=str,
    )
    async def test_bad_selections_are_invalid(self, store: Store, selection: Selection) -> None:
        with pytest.raises(Invalid):
            await store.list(v2.Model, selection)

    async def test_pages_continue_and_count_what_is_left(self, store: Store) -> None:
        for name in "abcde":
            await store.create(a_model(name))
        first = await store.list(v2.Model, Selection(limit=2))
        second = await store.list(v2.Model, Selection(limit=2, next=first.next))
        third = await store.list(v2.Model, Selection(limit=2, next=second.next))
        assert [names(page.items) for page in (first, second, third)] == [
            ["prod/a", "prod/b"],
            ["prod/c", "prod/d"],
            ["prod/e"],
        ]
        assert [page.remaining for page in (first, second, third)] == [3, 1, 0]
        assert third.next == ""

    async def test_a_selector_leaves_the_remaining_count_open(self, store: Store) -> None:
        for name in "abc":
            await store.create(a_model(name))
        page = await store.list(v2.Model, Selection(limit=1, fields="metadata.name!=b"))
        rest = await store.list(
            v2.Model, Selection(limit=9, fields="metadata.name!=b", next=page.next)
        )
        assert page.remaining is None
        assert names(page.items + rest.items) == ["prod/a", "prod/c"]

    async def test_all_pages_show_one_version(self, store: Store) -> None:
        made = [await store.create(a_model(name)) for name in "abcd"]
        first = await store.list(v2.Model, Selection(limit=1))
        await store.create(a_model("aa"))
        await store.update(described(made[1], "later"))
        await store.delete(v2.Model, key_of(made[2]))
        await store.create(a_model("c", text="again"))
        rest = await store.list(v2.Model, Selection(next=first.next))
        assert list(rest.items) == made[1:]
        assert rest.version == first.version

    async def test_a_page_that_history_has_lost_is_expired(self, store: Store) -> None:
        await store.create(a_model("a"))
        changing = await store.create(a_model("b"))
        first = await store.list(v2.Model, Selection(limit=1))
        await age(store, changing, self.history_changes + 1)
        with pytest.raises(Expired):
            await store.list(v2.Model, Selection(limit=1, next=first.next))

    async def test_a_token_of_another_list_is_invalid(self, store: Store) -> None:
        for name in "ab":
            await store.create(a_model(name))
        page = await store.list(v2.Model, Selection(limit=1))
        with pytest.raises(Invalid):
            await store.list(v2.ModelFamily, Selection(limit=1, next=page.next))
