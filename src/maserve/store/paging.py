"""Selecting and paging: which objects a list holds, and the token that continues it.

A page is of one version: objects that changed after the first page are shown as they were then,
as long as history reaches back that far.
"""

import base64
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from maserve.base.errors import Invalid, Problem
from maserve.base.keys import Key
from maserve.resource import (
    FieldSelector,
    LabelSelector,
    R,
    key_of,
    parse_fields,
    parse_labels,
)
from maserve.store.protocol import Page, Selection

T = TypeVar("T")

FIRST = Key("", "")
"""Sorts before every key."""

_VERSION = re.compile(r"[0-9]{1,18}")
"""What fits into an integer of the database."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query(Generic[R]):
    """A `Selection` understood: `version` None is the newest, `after` the last key shown."""

    kind: type[R]
    namespace: str = ""
    labels: LabelSelector = field(default_factory=LabelSelector)
    fields: FieldSelector = field(default_factory=FieldSelector)
    limit: int = 0
    version: int | None = None
    after: Key = FIRST

    @property
    def is_filtered(self) -> bool:
        return bool(self.labels) or bool(self.fields)

    def matches(self, resource: R) -> bool:
        return self.labels.matches(resource.metadata.labels) and self.fields.matches(resource)

    def page(self, rows: Iterable[T], *, version: int, decode: Callable[[T], R]) -> Page[R]:
        """Cut one page from the objects after `after`, in order, as they were at `version`."""
        items: list[R] = []
        left = 0
        for row in rows:
            is_full = 0 < self.limit <= len(items)
            if is_full and not self.is_filtered:
                left += 1
            elif self.matches(item := decode(row)):
                if is_full:
                    left = 1
                    break
                items.append(item)
        token = _token(self.kind, self.namespace, version, key_of(items[-1])) if left else ""
        remaining = None if self.is_filtered else left
        return Page(items=tuple(items), version=str(version), next=token, remaining=remaining)


def parse_query(kind: type[R], selection: Selection) -> Query[R]:
    """Return the query that `selection` asks for. Raises `Invalid`."""
    version, after = None, FIRST
    if selection.next:
        version, after = _parse_token(kind, selection)
    return Query(
        kind=kind,
        namespace=selection.namespace,
        labels=parse_labels(selection.labels),
        fields=parse_fields(selection.fields, kind),
        limit=max(0, selection.limit),
        version=version,
        after=after,
    )


def parse_version(text: str) -> int:
    """Return the number of a version to watch from. Raises `Invalid`."""
    if not text.isascii() or not text.isdigit():
        raise Invalid(Problem("resourceVersion", f"is no version: {text!r}"))
    return int(text)


def _token(kind: type[R], namespace: str, version: int, after: Key) -> str:
    parts = (kind.DESCRIPTOR.name, namespace, str(version), after.namespace, after.name)
    return base64.urlsafe_b64encode("/".join(parts).encode()).decode()


def _parse_token(kind: type[R], selection: Selection) -> tuple[int, Key]:
    wrong = Invalid(Problem("continue", "is no token of this list"))
    try:
        parts = base64.urlsafe_b64decode(selection.next.encode()).decode().split("/")
    except ValueError as error:  # no base64, or no text in it
        raise wrong from error
    match parts:
        case [name, namespace, version, last_namespace, last_name] if (name, namespace) == (
            kind.DESCRIPTOR.name,
            selection.namespace,
        ) and _VERSION.fullmatch(version):
            return int(version), Key(last_namespace, last_name)
        case _:
            raise wrong
