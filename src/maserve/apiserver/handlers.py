"""The six calls of one kind, over the store.

Order for writes: read the request, validate, hooks, storage; the answer is what is stored.
Source: behaviour 1.6, 1.8 and 17.
"""

from collections.abc import Sequence
from typing import Any, Generic

from google.protobuf.message import Message

from maserve.apiserver.criteria import arrange
from maserve.apiserver.errors import storage
from maserve.apiserver.hooks import Extensions, Hooks
from maserve.apiserver.naming import check_key
from maserve.apiserver.requests import is_dry_run, part, preconditions_of
from maserve.apiserver.timestamps import stamp_created, stamp_updated
from maserve.apiserver.validation import check
from maserve.base.clock import Clock
from maserve.base.errors import Invalid, NotFound, Problem
from maserve.base.keys import Key
from maserve.resource import API_VERSION, Kind, R, clone, key_of
from maserve.store import Page, Preconditions, Selection, Store
from maserve.wire import meta


class Handlers(Generic[R]):
    """Takes and gives the request and response messages of one kind's service."""

    def __init__(self, kind: Kind, store: Store, *, clock: Clock, extensions: Extensions) -> None:
        self._kind = kind
        self._message: type[R] = kind.message  # type: ignore[assignment]  # the kind's own class
        self._store = store
        self._clock = clock
        self._extensions = extensions

    async def create(self, request: Any) -> dict[str, Message]:
        """Store a new object."""
        resource: R = clone(part(request, self._kind.field))
        check(resource, self._extensions.problems_of(resource))
        dry_run = is_dry_run(request.create_options.dryRun)
        for hook in self._hooks:
            await hook.before_create(resource, dry_run=dry_run)
        stamp_created(resource, self._clock.now())
        with storage("create", key_of(resource)):
            created = await self._store.create(resource, dry_run=dry_run)
        return {self._kind.field: self._shown(created)}

    async def get(self, request: Any) -> dict[str, Message]:
        """Return one object; options are ignored: it is always the newest state."""
        key = check_key(request.namespace, request.name)
        with storage("get", key):
            found = await self._store.get(self._message, key)
        for hook in self._hooks:
            await hook.on_get_success(found)
        return {self._kind.field: self._shown(found)}

    async def update(self, request: Any) -> dict[str, Message]:
        """Replace metadata and spec of an object; its status stays."""
        resource: R = clone(part(request, self._kind.field))
        check(resource, self._extensions.problems_of(resource))
        dry_run = is_dry_run(request.update_options.dryRun)
        with storage("update", key_of(resource)):
            stored = await self._store.get(self._message, key_of(resource))
        for hook in self._hooks:
            await hook.before_update(resource, stored, dry_run=dry_run)
        stamp_updated(resource, stored, self._clock.now())
        with storage("update", key_of(resource)):
            updated = await self._store.update(resource, dry_run=dry_run)
        return {self._kind.field: self._shown(updated)}

    async def delete(self, request: Any) -> dict[str, Message]:
        """Delete one object, or mark it while finalizers hold it."""
        key = check_key(request.namespace, request.name)
        dry_run = is_dry_run(request.delete_options.dryRun)
        conditions = preconditions_of(request.delete_options)
        for hook in self._hooks:
            await hook.before_delete(key, dry_run=dry_run)
        with storage("delete", key):
            await self._delete(key, conditions, dry_run=dry_run)
        for hook in self._hooks:
            await hook.on_delete_success(key, dry_run=dry_run)
        return {}

    async def delete_collection(self, request: Any) -> dict[str, Message]:
        """Delete what the list options select in one namespace; a limit bounds how many."""
        namespace = request.namespace
        everything = Key(namespace, "")
        with storage("delete collection", everything):
            if not namespace:
                raise NotFound(self._kind.name, everything, "a namespace must be given")
        dry_run = is_dry_run(request.delete_options.dryRun)
        conditions = preconditions_of(request.delete_options)
        for hook in self._hooks:
            await hook.before_delete_collection(namespace, dry_run=dry_run)
        with storage("delete collection", everything):
            page = await self._page(namespace, request.list_options)
            for resource in page.items:
                await self._delete_selected(key_of(resource), conditions, dry_run=dry_run)
        for hook in self._hooks:
            await hook.on_delete_collection_success(namespace, dry_run=dry_run)
        return {}

    async def list(self, request: Any) -> dict[str, Message]:
        """Return the objects of one namespace or of all, selected, filtered, sorted, paged."""
        answer = self._kind.list_message()
        answer.type_meta.kind = f"{self._kind.name}List"  # type: ignore[attr-defined]
        answer.type_meta.apiVersion = API_VERSION  # type: ignore[attr-defined]
        if not request.list_options.watch:
            items = await self._list_into(answer, request)
            for hook in self._hooks:
                await hook.on_list_success(items)
        return {self._kind.list_field: answer}

    @property
    def _hooks(self) -> Sequence[Hooks[R]]:
        return self._extensions.hooks_of(self._kind.message)

    async def _list_into(self, answer: Any, request: Any) -> Sequence[R]:
        options, extended = request.list_options, request.list_options_ext
        with storage("list", Key(request.namespace, "")):
            if not extended.ByteSize():
                page: Page[R] = await self._page(request.namespace, options)
            else:
                page = await self._arranged(request.namespace, options, extended)
        answer.metadata.resourceVersion = page.version
        setattr(answer.metadata, "continue", page.next)
        if page.remaining:
            answer.metadata.remainingItemCount = page.remaining
        answer.items.extend(self._shown(item) for item in page.items)
        return page.items

    async def _arranged(self, namespace: str, options: meta.ListOptions, extended: Any) -> Page[R]:
        """Read all pages, then sort and cut: an order over one page would be none."""
        if getattr(options, "continue"):
            text = "does not go with list_options_ext; use its pagination.offset"
            raise Invalid(Problem("continue", text))
        whole = meta.ListOptions()
        whole.CopyFrom(options)
        whole.limit = 0
        page = await self._page(namespace, whole)
        limit = max(0, options.limit)
        shown = arrange(extended, self._kind, page.items, limit=limit)
        return Page(items=shown.items, version=page.version, remaining=shown.remaining)

    async def _page(self, namespace: str, options: meta.ListOptions) -> Page[R]:
        selection = Selection(
            namespace=namespace,
            labels=options.labelSelector,
            fields=options.fieldSelector,
            limit=max(0, options.limit),
            next=getattr(options, "continue"),
        )
        return await self._store.list(self._message, selection)

    async def _delete(self, key: Key, conditions: Preconditions, *, dry_run: bool) -> None:
        await self._store.delete(self._message, key, preconditions=conditions, dry_run=dry_run)

    async def _delete_selected(self, key: Key, conditions: Preconditions, *, dry_run: bool) -> None:
        try:
            await self._delete(key, conditions, dry_run=dry_run)
        except NotFound:
            return  # somebody else deleted it since the list was read

    def _shown(self, resource: R) -> R:
        """Return the object as answers have it: its true type, a status, no managed fields."""
        shown = clone(resource)
        shown.type_meta.kind = self._kind.name
        shown.type_meta.apiVersion = API_VERSION
        shown.metadata.ClearField("managedFields")
        shown.status.SetInParent()
        return shown
