"""Reconciles one InferenceServer: observe, run the chosen plugin's actors, record."""

from dataclasses import dataclass

import structlog

from maserve.base.clock import Clock
from maserve.base.errors import Error
from maserve.base.keys import Key
from maserve.conditions import Result, run_engine
from maserve.inferenceserver import events
from maserve.inferenceserver.clusters import FINALIZER, is_ending, remember_targets
from maserve.inferenceserver.plugin import Conditions, Plugin
from maserve.resource.metadata import (
    add_finalizer,
    clone,
    has_finalizer,
    is_deleting,
    remove_finalizer,
)
from maserve.runtime import After, Again, Done, EventRecorder, Outcome
from maserve.store import Store
from maserve.wire import v2

_log = structlog.get_logger(__name__)

REST_S = 600.0
"""Another look at a satisfied server when no event comes (behaviour 3.1)."""

FAILED_S = 60.0
"""Another look after a failure that only a change of world or spec clears (behaviour 3.1)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InferenceServerController:
    """The shell around the plugin. Safe to kill between any two lines and to run again."""

    store: Store
    plugin: Plugin
    recorder: EventRecorder
    clock: Clock

    async def reconcile(self, key: Key) -> Outcome:
        """Make one pass over the server with that key."""
        before = await self.store.find(v2.InferenceServer, key)
        if before is None or _is_gone(before):
            return Done()
        server = clone(before)
        if _prepare(server):
            await self.store.update(server)
            return Again()
        await self._update_details(server)
        chosen = self._choose(server)
        self.plugin.update_conditions(server, chosen)
        result = await run_engine(chosen, server)
        server.status.state = self.plugin.parse_state(server)
        server.status.observed_generation = server.metadata.generation
        return await self._record(before, server, result)

    def _choose(self, server: v2.InferenceServer) -> Conditions:
        if is_ending(server):
            return self.plugin.deletion_plugin(server)
        return self.plugin.creation_plugin(server)

    async def _update_details(self, server: v2.InferenceServer) -> None:
        try:
            await self.plugin.update_details(server)
        except Error as error:
            _log.warning("details not updated", error=str(error))

    async def _record(
        self, before: v2.InferenceServer, server: v2.InferenceServer, result: Result
    ) -> Outcome:
        if server.metadata != before.metadata:
            written = await self.store.update(server)
            server.metadata.CopyFrom(written.metadata)
        if server.status != before.status:
            server.status.update_time = self.clock.now().isoformat(timespec="seconds")
            written = await self.store.update_status(server)
            server.metadata.CopyFrom(written.metadata)
        events.record_changes(self.recorder, before, server, result.error)
        if result.satisfied and is_deleting(server):
            remove_finalizer(server, FINALIZER)
            await self.store.update(server)
            return Done()
        return _next_look(before, server, result)


def _is_gone(server: v2.InferenceServer) -> bool:
    """Tell whether the object is only held by somebody else's finalizer."""
    return is_deleting(server) and not has_finalizer(server, FINALIZER)


def _prepare(server: v2.InferenceServer) -> bool:
    """Put finalizer and known clusters in place before anything is made.

    Tell whether that changed it.
    """
    if is_deleting(server):
        return False
    missing = not has_finalizer(server, FINALIZER)
    add_finalizer(server, FINALIZER)
    return remember_targets(server) or missing


def _next_look(before: v2.InferenceServer, after: v2.InferenceServer, result: Result) -> Outcome:
    moved = (
        result.moved
        or before.status.state != after.status.state
        or before.metadata.annotations != after.metadata.annotations
        or _cluster_states(before) != _cluster_states(after)
    )
    if moved and not result.error:
        return Again()
    if result.satisfied:
        return After(REST_S)
    return After(FAILED_S if result.requeue_s is None else result.requeue_s)


def _cluster_states(server: v2.InferenceServer) -> list[tuple[str, int]]:
    return [(row.cluster_id, row.state) for row in server.status.cluster_statuses]
