"""List: selectors, pages, and the extended options that `ma` sends."""

from collections.abc import Sequence
from typing import Any

import pytest

from maserve.client import Client
from maserve.testing.resources import a_model, a_project, a_revision
from maserve.wire import api, meta, v2, wkt


def packed(value: Any) -> wkt.Any:
    holder = wkt.Any()
    holder.Pack(value)
    return holder


def criterion(field: str, operator: api.CriterionOperator, value: str = "") -> api.Criterion:
    return api.Criterion(
        field_name=field, operator=operator, match_value=packed(wkt.StringValue(value=value))
    )


def filtered(*criteria: api.Criterion) -> api.ListOptionsExt:
    return api.ListOptionsExt(operation=api.CriterionOperation(criterion=criteria))


NEWEST_FIRST = api.OrderBy(field="metadata.creation_timestamp", dir=api.SORT_ORDER_DESC)


@pytest.fixture
async def revisions(client: Client) -> None:
    for name, kind, base in (
        ("r1", "Deployment", "digits"),
        ("r2", "Deployment", "letters"),
        ("r3", "Model", "digits"),
    ):
        revision = a_revision(name, base_kind=kind, base=base)
        revision.spec.owner.name = "ann" if name == "r1" else "bob"
        revision.metadata.labels["nr"] = name
        await client.create(revision)


def names(found: Sequence[v2.Revision]) -> list[str]:
    return [revision.metadata.name for revision in found]


async def test_an_empty_list_is_there_and_says_what_it_is(raw: Any) -> None:
    answer = await raw("Revision", "ListRevision", namespace="demo")
    assert answer.HasField("revision_list")
    assert answer.revision_list.type_meta.kind == "RevisionList"
    assert answer.revision_list.metadata.resourceVersion


@pytest.mark.usefixtures("revisions")
async def test_a_list_holds_whole_objects_by_name(raw: Any) -> None:
    found = (await raw("Revision", "ListRevision", namespace="demo")).revision_list
    assert names(found.items) == ["r1", "r2", "r3"]
    assert found.items[0].type_meta.kind == "Revision"
    assert found.items[0].HasField("status")


@pytest.mark.usefixtures("revisions")
async def test_an_empty_namespace_means_all(client: Client) -> None:
    await client.create(a_revision("r0", namespace="other"))
    assert len(await client.list(v2.Revision)) == 4
    assert names(await client.list(v2.Revision, "other")) == ["r0"]


@pytest.mark.usefixtures("revisions")
async def test_selectors_select(client: Client) -> None:
    assert names(await client.list(v2.Revision, labels="nr in (r1,r3)")) == ["r1", "r3"]
    assert names(await client.list(v2.Revision, fields="metadata.name=r2")) == ["r2"]


@pytest.mark.parametrize(
    "options", [meta.ListOptions(labelSelector="a b c"), meta.ListOptions(fieldSelector="nope=1")]
)
async def test_bad_selectors_are_refused(raw: Any, options: meta.ListOptions) -> None:
    code, text = await raw.refused("Revision", "ListRevision", list_options=options)
    assert code == "INVALID_ARGUMENT"
    assert text.startswith("failed to list API object. namespace: , name: : ")


@pytest.mark.usefixtures("revisions")
async def test_pages_continue_each_other(raw: Any) -> None:
    first = await raw("Revision", "ListRevision", list_options=meta.ListOptions(limit=2))
    assert names(first.revision_list.items) == ["r1", "r2"]
    assert first.revision_list.metadata.remainingItemCount == 1
    options = meta.ListOptions(limit=2)
    setattr(options, "continue", getattr(first.revision_list.metadata, "continue"))
    second = await raw("Revision", "ListRevision", list_options=options)
    assert names(second.revision_list.items) == ["r3"]
    assert not getattr(second.revision_list.metadata, "continue")


@pytest.mark.usefixtures("revisions")
async def test_a_negative_limit_means_all_and_a_watching_list_is_empty(raw: Any) -> None:
    options = meta.ListOptions(limit=-1)
    found = await raw("Revision", "ListRevision", list_options=options)
    assert len(found.revision_list.items) == 3
    found = await raw("Revision", "ListRevision", list_options=meta.ListOptions(watch=True))
    assert len(found.revision_list.items) == 0
    assert found.HasField("revision_list")


@pytest.mark.usefixtures("revisions")
async def test_ma_asks_for_the_newest_first_and_a_limit(raw: Any) -> None:
    options = api.ListOptionsExt(
        order_by=[NEWEST_FIRST, api.OrderBy(field="metadata.name", dir=api.SORT_ORDER_DESC)],
        pagination=api.PaginationSpec(offset=0, limit=2),
    )
    found = await raw(
        "Revision",
        "ListRevision",
        list_options=meta.ListOptions(limit=2),
        list_options_ext=options,
    )
    assert names(found.revision_list.items) == ["r3", "r2"]
    assert found.revision_list.metadata.remainingItemCount == 1


@pytest.mark.usefixtures("revisions")
@pytest.mark.parametrize(
    ("criteria", "expected"),
    [
        (
            [criterion("revision.spec.base_type.kind", api.CRITERION_OPERATOR_EQUAL, "deployment")],
            ["r1", "r2"],
        ),
        (
            [
                criterion(
                    "revision.spec.base_type.kind", api.CRITERION_OPERATOR_EQUAL, "deployment"
                ),
                criterion("revision.spec.base_resource.name", api.CRITERION_OPERATOR_LIKE, "%GIT%"),
            ],
            ["r1"],
        ),
        (
            [criterion("revision.spec.owner.name", api.CRITERION_OPERATOR_EQUAL, "bob")],
            ["r2", "r3"],
        ),
        ([criterion("spec.baseResource.name", api.CRITERION_OPERATOR_NOT_EQUAL, "digits")], ["r2"]),
        ([criterion("metadata.labels.nr", api.CRITERION_OPERATOR_IN, "r1,r2")], ["r1", "r2"]),
    ],
    ids=["kind", "kind and base", "owner", "camel case", "label"],
)
async def test_criteria_filter(
    client: Client, criteria: list[api.Criterion], expected: list[str]
) -> None:
    assert names(await client.list(v2.Revision, options=filtered(*criteria))) == expected


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (
            api.ListOptionsExt(order_by=[api.OrderBy(field="spec.nope")]),
            "list_options_ext Revision has no field 'spec.nope'",
        ),
        (
            filtered(api.Criterion(field_name="spec.source")),
            "'spec.source' has a match_value that cannot be read: ''",
        ),
        (
            filtered(criterion("spec.source", api.CRITERION_OPERATOR_INVALID)),
            "'spec.source' has no valid operator",
        ),
        (
            api.ListOptionsExt(pagination=api.PaginationSpec(offset=-1)),
            "list_options_ext.pagination.offset must be >= 0",
        ),
    ],
    ids=["order", "value", "operator", "offset"],
)
async def test_bad_extended_options_are_refused(
    raw: Any, options: api.ListOptionsExt, text: str
) -> None:
    code, details = await raw.refused("Revision", "ListRevision", list_options_ext=options)
    assert code == "INVALID_ARGUMENT"
    assert details.endswith(text)


async def test_a_continued_list_cannot_be_sorted(raw: Any) -> None:
    options = meta.ListOptions()
    setattr(options, "continue", "x")
    code, details = await raw.refused(
        "Revision",
        "ListRevision",
        list_options=options,
        list_options_ext=api.ListOptionsExt(order_by=[NEWEST_FIRST]),
    )
    assert code == "INVALID_ARGUMENT"
    assert details.endswith("continue does not go with list_options_ext; use its pagination.offset")


async def test_fields_on_the_skip_list_are_left_out(client: Client) -> None:
    await client.create(a_model())
    options = api.ListOptionsExt(
        returned_field_skip_list=["spec.package_type", "metadata.labels.michelangelo/environment"]
    )
    found = (await client.list(v2.Model, options=options))[0]
    assert not found.spec.package_type
    assert found.spec.deployable_artifact_uri
    assert "michelangelo/environment" not in found.metadata.labels


async def test_other_kinds_list_too(client: Client) -> None:
    await client.create(a_project())
    assert [project.metadata.name for project in await client.list(v2.Project)] == ["demo"]
