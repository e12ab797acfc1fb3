"""Applying and deleting objects."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from maserve.base.errors import Error, NotFound, Unavailable
from maserve.base.keys import Key
from maserve.cli.api import Api
from maserve.cli.documents import Document
from maserve.cli.fields import title
from maserve.cli.goals import Aspect, Goal
from maserve.cli.session import Exit, Session, explain
from maserve.cli.wait import Wait, wait_for
from maserve.resource import Kind, Resource, is_deleting, key_of, kind_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """How to delete: whether and how long to wait until the object is gone."""

    wait: bool
    timeout_s: float
    ignore_missing: bool = False


async def apply_all(
    api: Api, session: Session, documents: Sequence[Document], *, dry_run: bool
) -> Exit:
    """Apply in order, tell what came of each, go on after an object that was refused."""
    code = Exit.OK
    tail = " (dry run)" if dry_run else ""
    for document in documents:
        name = title(document.resource)
        try:
            stored, outcome = await api.apply(document.resource, dry_run=dry_run)
        except Unavailable:
            raise
        except Error as error:
            session.screen.error(f"{document.origin}: {name}: {explain(error)}")
            code = Exit.FAILED
            continue
        if is_deleting(stored):
            session.screen.error(f"{document.origin}: {name} {_dying(document.resource)}")
            code = Exit.FAILED
            continue
        session.screen.out(f"{name} {outcome}{tail}")
    return code


async def delete_all(
    api: Api, session: Session, documents: Sequence[Document], how: Deletion
) -> Exit:
    """Delete in the opposite order, each gone before what it refers to is asked for."""
    code = Exit.OK
    for document in reversed(documents):
        resource = document.resource
        try:
            await delete_one(api, session, kind_of(resource), key_of(resource), how)
        except NotFound as error:
            session.screen.error(f"{document.origin}: {explain(error)}")
            code = Exit.FAILED
    return code


async def delete_one(api: Api, session: Session, kind: Kind, key: Key, how: Deletion) -> Exit:
    """Delete one object. Raises `NotFound` unless a missing one is fine."""
    name = f"{kind.name} {key}"
    try:
        there = await api.get(kind.message, key)
        await api.delete(kind.message, key, uid=there.metadata.uid)
    except NotFound:
        if not how.ignore_missing:
            raise
        session.screen.out(f"{name} is not there")
        return Exit.OK
    if not how.wait:
        session.screen.out(f"{name} deletion requested")
        return Exit.OK
    wait = Wait(
        key=key,
        goal=Goal(aspect=Aspect.DELETE),
        timeout_s=how.timeout_s,
        uid=there.metadata.uid,
    )
    try:
        with session.screen.progress(name) as show:
            await wait_for(api, session.outside, kind, wait, show)
    except asyncio.CancelledError:
        session.screen.note(f"the deletion of {name} goes on")
        raise
    session.screen.out(f"{name} deleted")
    return Exit.OK


def _dying(resource: Resource) -> str:
    kind, key = kind_of(resource).name, key_of(resource)
    wait = f"`maserve wait {kind} {key.name} -n {key.namespace} --for=delete`"
    return f"is being deleted, and what was applied goes with it; {wait}, then apply again"
