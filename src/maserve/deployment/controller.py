"""Reconciles one Deployment: gate, decide, run the chosen lifecycle's actors, record."""

from dataclasses import dataclass

import structlog

from maserve.base.clock import Clock
from maserve.base.errors import Error, Unsupported
from maserve.base.keys import Key
from maserve.conditions import Result, first_unmet, keep_conditions, run_engine
from maserve.deployment import events
from maserve.deployment.decide import Gate, Lifecycle, decide, needs_gate
from maserve.deployment.keys import FINALIZER
from maserve.deployment.plugin import Conditions, ObservabilityContext, Plugin, RequestContext
from maserve.deployment.registrar import Registrar, find_plugin
from maserve.deployment.stages import enter_stage, failed_stage
from maserve.resource.metadata import (
    add_finalizer,
    clone,
    has_finalizer,
    is_deleting,
    remove_finalizer,
)
from maserve.runtime import After, Again, Done, EventRecorder, Outcome, Stop
from maserve.store import Store
from maserve.wire import v2

_log = structlog.get_logger(__name__)

REST_S = 60.0
"""Another look at a Deployment at rest when no event comes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentController:
    """The shell around the plugins. Safe to kill between any two lines and to run again."""

    store: Store
    registrar: Registrar
    recorder: EventRecorder
    clock: Clock

    async def reconcile(self, key: Key) -> Outcome:
        """Make one pass over the Deployment with that key."""
        before = await self.store.find(v2.Deployment, key)
        if before is None or (is_deleting(before) and not has_finalizer(before, FINALIZER)):
            return Done()
        deployment = clone(before)
        try:
            plugin = find_plugin(self.registrar, deployment)
        except Unsupported as error:
            return await self._refuse(deployment, str(error))
        if not is_deleting(deployment) and not has_finalizer(deployment, FINALIZER):
            add_finalizer(deployment, FINALIZER)
            await self.store.update(deployment)
            return Again()
        return await self._pass(plugin, before, deployment)

    async def _pass(
        self, plugin: Plugin, before: v2.Deployment, deployment: v2.Deployment
    ) -> Outcome:
        lifecycle = decide(deployment, await _ask_gate(plugin, deployment))
        result = Result(satisfied=True, terminal=True)
        chosen = await _choose(plugin, lifecycle, deployment)
        if chosen is not None:
            keep_conditions(deployment, (actor.type for actor in chosen.actors))
            result = await run_engine(chosen, deployment)
            keep_conditions(deployment, (actor.type for actor in chosen.actors))
            await _advance(plugin, lifecycle, deployment, result)
        await _tell_state(plugin, before, deployment)
        return await self._record(before, deployment, result)

    async def _refuse(self, deployment: v2.Deployment, text: str) -> Outcome:
        """Say in the status that no plugin serves this Deployment, and what that holds up."""
        if is_deleting(deployment):
            text = f"{text}; the finalizer holds until one is registered, or is removed by hand"
        if (deployment.status.message, deployment.status.state) != (
            text,
            v2.DEPLOYMENT_STATE_INVALID,
        ):
            deployment.status.message = text
            deployment.status.state = v2.DEPLOYMENT_STATE_INVALID
            await self.store.update_status(deployment)
            self.recorder.warning(deployment, "ReconciliationError", text)
        return Stop(text)

    async def _record(
        self, before: v2.Deployment, deployment: v2.Deployment, result: Result
    ) -> Outcome:
        """Write metadata, then status: what is recorded of a start is not counted twice.

        After a cleanup the other way round: where it was is forgotten, and the finalizer given up,
        only when the status says that nothing is left there.
        """
        is_over = deployment.status.stage == v2.DEPLOYMENT_STAGE_CLEAN_UP_COMPLETE
        if not is_over:
            await self._save_metadata(before, deployment)
        await self._save_status(before, deployment)
        events.record_changes(self.recorder, before, deployment, result.error)
        is_gone = is_over and is_deleting(deployment)
        if is_gone:
            remove_finalizer(deployment, FINALIZER)
        if is_over:
            await self._save_metadata(before, deployment)
        return Done() if is_gone else _next_look(before, deployment, result)

    async def _save_metadata(self, before: v2.Deployment, deployment: v2.Deployment) -> None:
        seen = clone(before).metadata
        seen.resourceVersion = deployment.metadata.resourceVersion
        if deployment.metadata != seen:
            written = await self.store.update(deployment)
            deployment.metadata.resourceVersion = written.metadata.resourceVersion

    async def _save_status(self, before: v2.Deployment, deployment: v2.Deployment) -> None:
        if deployment.status != before.status:
            written = await self.store.update_status(deployment)
            deployment.metadata.resourceVersion = written.metadata.resourceVersion


async def _ask_gate(plugin: Plugin, deployment: v2.Deployment) -> Gate:
    """Ask the plugin's gate while a rollout is under way; one that cannot answer does not judge."""
    if not needs_gate(deployment):
        return Gate()
    try:
        healthy = await plugin.health_check_gate(_observability(), deployment)
    except Error as error:
        _log.warning("health gate cannot be answered", error=str(error))
        return Gate()
    return Gate(asked=True, healthy=healthy)


async def _tell_state(plugin: Plugin, before: v2.Deployment, deployment: v2.Deployment) -> None:
    """Put the plugin's state into the status; one that cannot tell leaves it and its reason."""
    try:
        status = await plugin.get_state(_observability(), deployment)
    except Error as error:
        _log.warning("state cannot be told", error=str(error))
        if deployment.status.stage == before.status.stage and not deployment.status.message:
            deployment.status.message = before.status.message
        return
    deployment.status.CopyFrom(status)


async def _choose(
    plugin: Plugin, lifecycle: Lifecycle, deployment: v2.Deployment
) -> Conditions | None:
    match lifecycle:
        case Lifecycle.CLEANUP:
            return plugin.cleanup_plugin()
        case Lifecycle.ROLLOUT:
            return await plugin.rollout_plugin(deployment)
        case Lifecycle.ROLLBACK:
            return await plugin.rollback_plugin(deployment)
        case Lifecycle.STEADY:
            return plugin.steady_state_plugin()
        case Lifecycle.NOTHING:
            return None


async def _advance(
    plugin: Plugin, lifecycle: Lifecycle, deployment: v2.Deployment, result: Result
) -> None:
    """Move the stage on, and do what entering it asks for."""
    status = deployment.status
    context = RequestContext(deployment=deployment, logger=_log)
    failed = result.terminal and not result.satisfied
    if failed and lifecycle is Lifecycle.STEADY:
        if result.moved:
            await plugin.populate_deployment_logs(context, deployment)
        failed = False  # the stage stays: what is complete is repaired, not undone
    stage = failed_stage(lifecycle) if failed else plugin.parse_stage(deployment)
    message = _failure(lifecycle, deployment, result) if failed else status.message
    is_told = (stage, message) == (status.stage, status.message)
    if is_told and stage != v2.DEPLOYMENT_STAGE_CLEAN_UP_COMPLETE:  # forgetting may be left to do
        return
    if not failed and status.stage == v2.DEPLOYMENT_STAGE_ROLLBACK_FAILED:
        message = ""
    status.stage, status.message = stage, message
    if failed:
        await plugin.populate_deployment_logs(context, deployment)
    if stage in (v2.DEPLOYMENT_STAGE_ROLLBACK_COMPLETE, v2.DEPLOYMENT_STAGE_ROLLOUT_FAILED):
        await plugin.populate_message(context, deployment)
    enter_stage(deployment)


def _failure(lifecycle: Lifecycle, deployment: v2.Deployment, result: Result) -> str:
    """Say why a lifecycle failed; only a rollout is not tried again by itself."""
    unmet = first_unmet(deployment.status.conditions)
    cause = f"{unmet.type}: {unmet.message or unmet.reason}" if unmet is not None else ""
    again = "" if lifecycle is Lifecycle.ROLLOUT else "; it is tried again"
    return f"{result.error or cause}{again}"


def _observability() -> ObservabilityContext:
    return ObservabilityContext(logger=_log)


def _next_look(before: v2.Deployment, after: v2.Deployment, result: Result) -> Outcome:
    moved = (
        (result.moved and not result.error)
        or before.status.stage != after.status.stage
        or before.metadata.annotations != after.metadata.annotations
    )
    if moved:
        return Again()
    return After(REST_S if result.requeue_s is None else result.requeue_s)
