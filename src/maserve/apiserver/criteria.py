"""Ordering, filtering and paging of lists beyond what Kubernetes selectors say. Pure.

Our choices where the reference says nothing (behaviour 1.6, 16): a field at its default is null;
LIKE ignores case and knows `%`, `_` and a backslash before either; on a repeated field a criterion
holds if it holds for one item, a negated one if it holds for all; nulls sort first; an order
without a direction ascends; fields on the skip list are left out of what is returned.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic

from google.protobuf.message import DecodeError

from maserve.apiserver.fieldpaths import FieldPath, Value, parse_path
from maserve.base.errors import Invalid, Problem
from maserve.resource import Kind, R, clone
from maserve.wire import api, find_message, wkt

Test = Callable[[R], bool]

_MAX_DEPTH = 32

_NEGATED = {
    api.CRITERION_OPERATOR_NOT_EQUAL: api.CRITERION_OPERATOR_EQUAL,
    api.CRITERION_OPERATOR_NOT_IN: api.CRITERION_OPERATOR_IN,
    api.CRITERION_OPERATOR_IS_NOT_NULL: api.CRITERION_OPERATOR_IS_NULL,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown(Generic[R]):
    """The objects to return, and how many there are behind them."""

    items: tuple[R, ...]
    remaining: int


def arrange(
    options: api.ListOptionsExt, kind: Kind, resources: Sequence[R], *, limit: int = 0
) -> Shown[R]:
    """Filter, sort and cut `resources`. `limit` counts if the options have none; 0 means all.

    Raises `Invalid` for fields, operators and values that mean nothing.
    """
    test: Test[R] = _operation(options.operation, kind, depth=0)
    orders = [(parse_path(order.field, kind), order.dir) for order in options.order_by]
    skipped = [parse_path(path, kind) for path in options.returned_field_skip_list]
    found = [resource for resource in resources if test(resource)]
    for path, direction in reversed(orders):
        found.sort(key=_sort_key(path), reverse=direction == api.SORT_ORDER_DESC)
    offset, limit = _page(options.pagination, limit)
    end = offset + limit if limit else len(found)
    items = tuple(_without(resource, skipped) for resource in found[offset:end])
    return Shown(items=items, remaining=max(0, len(found) - end))


def _page(pagination: api.PaginationSpec, limit: int) -> tuple[int, int]:
    if pagination.offset < 0:
        raise Invalid(Problem("list_options_ext.pagination.offset", "must be >= 0"))
    chosen = pagination.limit or limit
    return pagination.offset, max(0, chosen)


def _without(resource: R, skipped: Sequence[FieldPath]) -> R:
    if not skipped:
        return resource
    plain = clone(resource)
    for path in skipped:
        path.clear(plain)
    return plain


def _sort_key(path: FieldPath) -> Callable[[R], Any]:
    def key(resource: R) -> tuple[int, Any]:
        values = path.values(resource)
        return (0, 0) if not values else (1, values[0])

    return key


def _operation(operation: api.CriterionOperation, kind: Kind, *, depth: int) -> Test[R]:
    if depth > _MAX_DEPTH:
        raise Invalid(Problem("list_options_ext.operation", f"is deeper than {_MAX_DEPTH}"))
    tests: list[Test[R]] = [_criterion(one, kind) for one in operation.criterion]
    tests += [_operation(one, kind, depth=depth + 1) for one in operation.sub_operations]
    if not tests:
        return lambda _: True
    if operation.logical_operator == api.LOGICAL_OPERATOR_OR:
        return lambda resource: any(test(resource) for test in tests)
    return lambda resource: all(test(resource) for test in tests)


def _criterion(criterion: api.Criterion, kind: Kind) -> Test[R]:
    path = parse_path(criterion.field_name, kind)
    positive = _NEGATED.get(criterion.operator, criterion.operator)
    if positive == api.CRITERION_OPERATOR_IS_NULL:
        wanted = criterion.operator == positive
        return lambda resource: (not path.values(resource)) is wanted
    holds = _comparison(criterion, positive, path)
    if positive == criterion.operator:
        return lambda resource: any(holds(value) for value in path.values(resource))
    return lambda resource: not any(holds(value) for value in path.values(resource))


def _comparison(
    criterion: api.Criterion, operator: api.CriterionOperator, path: FieldPath
) -> Callable[[Value], bool]:
    wanted = _match_value(criterion)
    if operator == api.CRITERION_OPERATOR_IN:
        choices = wanted if isinstance(wanted, list) else str(wanted).split(",")
        return lambda value: any(_is_equal(value, choice, path) for choice in choices)
    if isinstance(wanted, list):
        raise _wrong(criterion, "takes a list only with IN and NOT_IN")
    if operator == api.CRITERION_OPERATOR_EQUAL:
        return lambda value: _is_equal(value, wanted, path)
    if operator == api.CRITERION_OPERATOR_LIKE:
        pattern = _like(str(wanted))
        return lambda value: pattern.fullmatch(str(value)) is not None
    compare = _ORDERED.get(operator)
    if compare is None:
        raise _wrong(criterion, "has no valid operator")
    return lambda value: compare(_order(value, wanted))


_ORDERED: dict[int, Callable[[int | None], bool]] = {
    api.CRITERION_OPERATOR_GREATER_THAN: lambda order: order is not None and order > 0,
    api.CRITERION_OPERATOR_GREATER_THAN_OR_EQUAL_TO: lambda order: order is not None and order >= 0,
    api.CRITERION_OPERATOR_LESS_THAN: lambda order: order is not None and order < 0,
    api.CRITERION_OPERATOR_LESS_THAN_OR_EQUAL_TO: lambda order: order is not None and order <= 0,
}


def _is_equal(value: Value, wanted: Any, path: FieldPath) -> bool:
    if path.is_kind:
        return str(value).casefold() == str(wanted).casefold()
    return _order(value, wanted) == 0


def _order(value: Value, wanted: Any) -> int | None:
    """Return -1, 0 or 1 as `value` is below, at or above `wanted`; None if they do not compare."""
    like = _as(value, wanted)
    if like is None:
        return None
    left: Any = value
    return int(left > like) - int(left < like)


def _as(value: Value, wanted: Any) -> Any:
    """Return `wanted` in the type of `value`, None if it cannot be."""
    if isinstance(value, str):
        return str(wanted)
    if isinstance(value, bool):
        return {"true": True, "false": False}.get(str(wanted).lower())
    try:
        return _as_instant(wanted) if isinstance(value, datetime) else float(wanted)
    except (TypeError, ValueError):
        return None


def _as_instant(wanted: Any) -> datetime:
    found = wanted if isinstance(wanted, datetime) else datetime.fromisoformat(str(wanted))
    if found.tzinfo is None:
        raise ValueError(f"{wanted} has no time zone")
    return found


def _like(text: str) -> re.Pattern[str]:
    parts = re.findall(r"\\.|.", text, re.DOTALL)
    wild = {"%": ".*", "_": "."}
    pattern = "".join(wild.get(part) or re.escape(part[-1]) for part in parts)
    return re.compile(pattern, re.IGNORECASE | re.DOTALL)


def _match_value(criterion: api.Criterion) -> Any:
    """Return what the Any holds: the value of a wrapper, an instant, or a list of values."""
    packed = criterion.match_value
    try:
        message: Any = find_message(packed.type_url.rpartition("/")[2]).FromString(packed.value)
    except (KeyError, DecodeError) as error:
        text = f"has a match_value that cannot be read: {packed.type_url!r}"
        raise _wrong(criterion, text) from error
    if isinstance(message, wkt.ListValue):
        return list(message)
    if isinstance(message, wkt.Timestamp):
        return message.ToDatetime(tzinfo=UTC)
    if message.DESCRIPTOR.full_name in _WRAPPERS:
        return message.value
    raise _wrong(criterion, f"has a match_value of an unsupported type: {packed.type_url!r}")


_WRAPPERS = frozenset(
    f"google.protobuf.{name}Value"
    for name in ("String", "Bool", "Int32", "Int64", "UInt32", "UInt64", "Float", "Double")
)


def _wrong(criterion: api.Criterion, text: str) -> Invalid:
    return Invalid(Problem("list_options_ext.operation", f"{criterion.field_name!r} {text}"))
