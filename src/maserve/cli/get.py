"""Showing objects: tables, YAML, JSON, names; once or as they change."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from maserve.base.keys import Key
from maserve.cli.api import Api
from maserve.cli.session import Exit, Session
from maserve.cli.tables import Layout, align, cells, headings, layout
from maserve.client import Change, ChangeType
from maserve.resource import API_VERSION, Kind, Resource, to_shown_json, to_yaml


class Format(StrEnum):
    """How objects are shown."""

    TABLE = "table"
    YAML = "yaml"
    JSON = "json"
    NAME = "name"


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What to show. An empty `name` means all of `namespace`, an empty namespace all there are."""

    kind: Kind
    namespace: str
    name: str = ""
    format: Format = Format.TABLE

    @property
    def key(self) -> Key:
        return Key(self.namespace, self.name)

    @property
    def with_namespace(self) -> bool:
        return not self.namespace


async def show(api: Api, session: Session, query: Query) -> Exit:
    """Show what is there now. Raises `NotFound` for a name that is not."""
    if query.name:
        found: Sequence[Resource] = (await api.get(query.kind.message, query.key),)
    else:
        found = await api.list(query.kind.message, query.namespace)
    if not found:
        where = f"namespace {query.namespace} (-A: all)" if query.namespace else "any namespace"
        session.screen.note(f"no {query.kind.name} in {where}")
        return Exit.OK
    for line in _render(found, query, session.outside.clock.now()):
        session.screen.out(line)
    return Exit.OK


async def follow(api: Api, session: Session, query: Query) -> Exit:
    """Show what is there and then every change, until interrupted."""
    feed = _Feed(session, query)
    async for change in api.watch(query.kind.message, query.key):
        feed.take(change)
    return Exit.OK


class _Feed:
    """Shows the first objects together, so that their columns fit, and each change as it comes."""

    def __init__(self, session: Session, query: Query) -> None:
        self._session = session
        self._query = query
        self._first: list[Resource] = []
        self._layout: Layout | None = None
        self._synced = False

    def take(self, change: Change[Resource]) -> None:
        if change.type is ChangeType.SYNCED and not self._synced:
            self._synced = True
            self._begin()
        elif change.object is not None and not self._synced:
            self._first.append(change.object)
        elif change.object is not None:
            self._step(change.object, gone=change.type is ChangeType.DELETED)

    def _begin(self) -> None:
        if self._query.format is not Format.TABLE:
            for resource in self._first:
                self._step(resource, gone=False)
            return
        now = self._session.outside.clock.now()
        rows = [_headings(self._query), *(_row(each, self._query, now) for each in self._first)]
        self._layout = layout(rows)
        for row in rows:
            self._session.screen.out(self._layout.line(row))

    def _step(self, resource: Resource, *, gone: bool) -> None:
        out = self._session.screen.out
        tail = "   (deleted)" if gone else ""
        match self._query.format:
            case Format.TABLE if self._layout is not None:
                row = _row(resource, self._query, self._session.outside.clock.now())
                out(self._layout.line(row) + tail)
            case Format.NAME:
                out(_name(resource, self._query) + tail)
            case Format.JSON:
                out(json.dumps(to_shown_json(resource)))
            case _:
                out("---\n" + to_yaml((resource,)).rstrip())


def _render(found: Sequence[Resource], query: Query, now: datetime) -> list[str]:
    match query.format:
        case Format.TABLE:
            return align([_headings(query), *(_row(each, query, now) for each in found)])
        case Format.NAME:
            return [_name(each, query) for each in found]
        case Format.YAML:
            return [to_yaml(found).rstrip()]
        case Format.JSON:
            return [_json(found, query)]


def _json(found: Sequence[Resource], query: Query) -> str:
    """Render a named object alone and others as a list."""
    bodies = [to_shown_json(each) for each in found]
    if query.name:
        return json.dumps(bodies[0], indent=2)
    listed = {"apiVersion": API_VERSION, "kind": f"{query.kind.name}List", "items": bodies}
    return json.dumps(listed, indent=2)


def _headings(query: Query) -> tuple[str, ...]:
    return headings(query.kind.message, with_namespace=query.with_namespace)


def _row(resource: Resource, query: Query, now: datetime) -> tuple[str, ...]:
    return cells(resource, with_namespace=query.with_namespace, now=now)


def _name(resource: Resource, query: Query) -> str:
    meta = resource.metadata
    name = f"{meta.namespace}/{meta.name}" if query.with_namespace else meta.name
    return f"{query.kind.name.lower()}/{name}"
