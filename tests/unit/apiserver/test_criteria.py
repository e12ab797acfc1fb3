"""Criteria, orders and pages: against a naive filter, and operator by operator."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maserve.apiserver.criteria import arrange
from maserve.base.errors import Invalid
from maserve.resource import kind_of
from maserve.testing.resources import a_deployment, a_model
from maserve.wire import api, v2, wkt

MODEL = kind_of(v2.Model)


def packed(value: Any) -> wkt.Any:
    holder = wkt.Any()
    holder.Pack(value)
    return holder


def text(value: str) -> wkt.Any:
    return packed(wkt.StringValue(value=value))


def where(field: str, operator: str, value: wkt.Any | None = None) -> api.ListOptionsExt:
    one = api.Criterion(
        field_name=field,
        operator=api.CriterionOperator.Value(f"CRITERION_OPERATOR_{operator}"),
        match_value=value,
    )
    return api.ListOptionsExt(operation=api.CriterionOperation(criterion=[one]))


def a_trained(name: str, *, algorithm: str = "", revision: int = 0, created: int = 0) -> v2.Model:
    model = a_model(name)
    model.spec.algorithm = algorithm
    model.spec.revision_id = revision
    model.metadata.creationTimestamp.seconds = created
    return model


MODELS = (
    a_trained("m1", algorithm="Forest", revision=1, created=100),
    a_trained("m2", algorithm="boosted forest", revision=2, created=200),
    a_trained("m3", created=300),
)
MODELS[0].spec.sealed = True
MODELS[1].spec.model_family.name = "digits"
MODELS[2].spec.decision_threshold = 0.5


def names(found: Sequence[v2.Model]) -> list[str]:
    return [model.metadata.name for model in found]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (where("spec.algorithm", "EQUAL", text("Forest")), ["m1"]),
        (where("spec.algorithm", "EQUAL", text("forest")), []),
        (where("spec.algorithm", "NOT_EQUAL", text("Forest")), ["m2", "m3"]),
        (where("spec.algorithm", "LIKE", text("%forest")), ["m1", "m2"]),
        (where("spec.algorithm", "LIKE", text("_orest")), ["m1"]),
        (where("spec.algorithm", "LIKE", text(r"\_orest")), []),
        (where("spec.algorithm", "IN", text("Forest,x")), ["m1"]),
        (where("spec.algorithm", "NOT_IN", text("Forest,x")), ["m2", "m3"]),
        (where("spec.algorithm", "IS_NULL"), ["m3"]),
        (where("spec.algorithm", "IS_NOT_NULL"), ["m1", "m2"]),
        (where("spec.algorithm", "GREATER_THAN", text("a")), ["m2"]),
        (where("spec.revision_id", "GREATER_THAN", packed(wkt.Int32Value(value=1))), ["m2"]),
        (where("spec.revision_id", "LESS_THAN", text("2")), ["m1"]),
        (where("spec.revision_id", "LESS_THAN_OR_EQUAL_TO", text("2")), ["m1", "m2"]),
        (where("spec.revisionId", "GREATER_THAN_OR_EQUAL_TO", text("1")), ["m1", "m2"]),
        (where("spec.revision_id", "EQUAL", text("one")), []),
        (where("spec.decision_threshold", "LESS_THAN", text("0.6")), ["m3"]),
        (where("spec.sealed", "EQUAL", packed(wkt.BoolValue(value=True))), ["m1"]),
        (where("spec.sealed", "EQUAL", text("maybe")), []),
        (
            where("spec.package_type", "EQUAL", text("DEPLOYABLE_MODEL_PACKAGE_TYPE_TRITON")),
            ["m1", "m2", "m3"],
        ),
        (where("spec.model_family", "EQUAL", text("digits")), ["m2"]),
        (where("model.spec.model_family.name", "EQUAL", text("digits")), ["m2"]),
        (where("spec.deployable_artifact_uri", "LIKE", text("%/m3")), ["m3"]),
        (
            where("spec.deployable_artifact_uri", "NOT_EQUAL", text("file:///models/m3")),
            ["m1", "m2"],
        ),
        (where("metadata.creation_timestamp", "EQUAL", text("1970-01-01T00:03:20Z")), ["m2"]),
        (
            where("metadata.creationTimestamp", "LESS_THAN", packed(wkt.Timestamp(seconds=200))),
            ["m1"],
        ),
        (where("metadata.creation_timestamp", "LESS_THAN", text("1970-01-01T00:03:20")), []),
        (where("metadata.labels", "IS_NULL"), ["m1", "m2", "m3"]),
        (where("metadata.labels.a.b/c", "IS_NULL"), ["m1", "m2", "m3"]),
        (where("spec.quality_scores.name", "IS_NULL"), ["m1", "m2", "m3"]),
        (where("spec.input_schema", "IS_NOT_NULL"), []),
    ],
    ids=lambda value: (
        str(value.operation).replace("\n", " ")[:60]
        if isinstance(value, api.ListOptionsExt)
        else None
    ),
)
def test_a_criterion_selects(options: api.ListOptionsExt, expected: list[str]) -> None:
    assert names(arrange(options, MODEL, MODELS).items) == expected


def test_in_takes_a_list() -> None:
    choices = wkt.ListValue()
    choices.extend(["Forest", "boosted forest"])
    options = where("spec.algorithm", "IN", packed(choices))
    assert names(arrange(options, MODEL, MODELS).items) == ["m1", "m2"]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (where("spec.algorithm", "EQUAL", packed(wkt.ListValue())), "only with IN and NOT_IN"),
        (where("spec.algorithm", "EQUAL", packed(wkt.Empty())), "of an unsupported type"),
        (where("spec.algorithm", "EQUAL"), "cannot be read"),
        (where("spec.algorithm", "INVALID", text("x")), "has no valid operator"),
        (where("spec.algorithm.name", "EQUAL", text("x")), "has no field"),
        (where("nothing", "EQUAL", text("x")), "has no field 'nothing'"),
        (where("", "EQUAL", text("x")), "has no field ''"),
    ],
)
def test_what_means_nothing_is_refused(options: api.ListOptionsExt, problem: str) -> None:
    with pytest.raises(Invalid, match=problem):
        arrange(options, MODEL, MODELS)


def test_a_tree_that_is_too_deep_is_refused() -> None:
    operation = api.CriterionOperation()
    deepest = [operation := api.CriterionOperation(sub_operations=[operation]) for _ in range(40)]
    with pytest.raises(Invalid, match="is deeper than 32"):
        arrange(api.ListOptionsExt(operation=deepest[-1]), MODEL, MODELS)


def test_trees_join_with_and_or() -> None:
    first = where("spec.algorithm", "EQUAL", text("Forest")).operation
    third = where("metadata.name", "EQUAL", text("m3")).operation
    either = api.CriterionOperation(
        sub_operations=[first, third], logical_operator=api.LOGICAL_OPERATOR_OR
    )
    both = api.CriterionOperation(sub_operations=[first, third])
    assert names(arrange(api.ListOptionsExt(operation=either), MODEL, MODELS).items) == ["m1", "m3"]
    assert names(arrange(api.ListOptionsExt(operation=both), MODEL, MODELS).items) == []


@pytest.mark.parametrize(
    ("field", "direction", "expected"),
    [
        ("spec.revision_id", api.SORT_ORDER_ASC, ["m3", "m1", "m2"]),
        ("spec.revision_id", api.SORT_ORDER_DESC, ["m2", "m1", "m3"]),
        ("metadata.creation_timestamp", api.SORT_ORDER_DESC, ["m3", "m2", "m1"]),
        ("metadata.name", api.SORT_ORDER_INVALID, ["m1", "m2", "m3"]),
    ],
)
def test_orders_sort_with_nulls_first(
    field: str, direction: api.SortOrder, expected: list[str]
) -> None:
    options = api.ListOptionsExt(order_by=[api.OrderBy(field=field, dir=direction)])
    assert names(arrange(options, MODEL, MODELS).items) == expected


def test_the_first_order_counts_most() -> None:
    models = [a_trained("a", revision=2), a_trained("b", revision=1), a_trained("c", revision=1)]
    options = api.ListOptionsExt(
        order_by=[
            api.OrderBy(field="spec.revision_id"),
            api.OrderBy(field="metadata.name", dir=api.SORT_ORDER_DESC),
        ]
    )
    assert names(arrange(options, MODEL, models).items) == ["c", "b", "a"]


@given(
    revisions=st.lists(st.integers(0, 5), max_size=12),
    bound=st.integers(0, 5),
    offset=st.integers(0, 6),
    limit=st.integers(0, 6),
)
def test_pages_of_a_filtered_order_are_slices_of_a_naive_one(
    revisions: list[int], bound: int, offset: int, limit: int
) -> None:
    models = [a_trained(f"m{n:02}", revision=number) for n, number in enumerate(revisions)]
    options = where("spec.revision_id", "GREATER_THAN_OR_EQUAL_TO", text(str(bound)))
    options.order_by.add(field="spec.revision_id", dir=api.SORT_ORDER_DESC)
    options.pagination.offset = offset
    options.pagination.limit = limit
    naive = sorted(
        (model for model in models if model.spec.revision_id and model.spec.revision_id >= bound),
        key=lambda model: -model.spec.revision_id,
    )
    end = offset + limit if limit else len(naive)
    shown = arrange(options, MODEL, models)
    assert list(shown.items) == naive[offset:end]
    assert shown.remaining == max(0, len(naive) - end)


def test_skipped_fields_leave_the_given_objects_alone() -> None:
    deployment = a_deployment()
    deployment.metadata.labels["team"] = "digits"
    options = api.ListOptionsExt(
        returned_field_skip_list=["spec.inference_server.name", "metadata.labels.team"]
    )
    shown = arrange(options, kind_of(v2.Deployment), [deployment]).items[0]
    assert not shown.spec.inference_server.name
    assert not shown.metadata.labels
    assert deployment.spec.inference_server.name == "is1"
