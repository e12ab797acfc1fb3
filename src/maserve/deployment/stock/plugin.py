"""The stock Deployment plugin.

Rollout, rollback, cleanup and steady state on an InferenceServer.
"""

from maserve.conditions import ActorList, first_unmet
from maserve.deployment.keys import (
    ALERT_FIRED,
    ROLLOUT_FAILED,
    candidate,
    current,
    stage_name,
)
from maserve.deployment.notes import with_note, without_note
from maserve.deployment.places import (
    describe_candidate,
    is_live,
    is_wanted,
)
from maserve.deployment.plugin import Conditions, ObservabilityContext, RequestContext
from maserve.deployment.stock.chain import rollout_steps
from maserve.deployment.stock.cleanup.cleanup_complete import CleanupComplete
from maserve.deployment.stock.gate import ask_gate, remember_verdict
from maserve.deployment.stock.placement import candidate_place
from maserve.deployment.stock.ports import Actor, Ports
from maserve.deployment.stock.rollback.restored import Restored, can_restore
from maserve.deployment.stock.rollback.rollback_complete import RollbackComplete
from maserve.deployment.stock.sites import list_placed
from maserve.deployment.stock.stage import parse_stage
from maserve.deployment.stock.state import find_standing
from maserve.deployment.stock.steadystate.state_steady import StateSteady
from maserve.deployment.stock.strategy import pace_of
from maserve.gates import Answer
from maserve.resource.annotations import HEALTH_GATE_REASON, RETRY, ROLLBACK_REASON
from maserve.wire import v2


class StockPlugin:
    """Serves `TARGET_TYPE_INFERENCE_SERVER`. Holds no state of its own."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    async def rollout_plugin(self, deployment: v2.Deployment) -> Conditions:
        sites = await list_placed(self._ports, deployment, candidate_place(deployment))
        pace = pace_of(deployment, self._ports.settings)
        return ActorList[v2.Deployment](rollout_steps(self._ports, deployment, sites, pace))

    async def rollback_plugin(self, deployment: v2.Deployment) -> Conditions:
        at_once: list[Actor] = []
        later: list[Actor] = []
        sites = await list_placed(self._ports, deployment)
        for site in sites:
            is_ready = await can_restore(site, current(deployment))
            others = tuple(other for other in sites if other is not site)
            (at_once if is_ready else later).append(Restored(site, others))
        actors = [*at_once, *later]
        return ActorList[v2.Deployment]([*actors, RollbackComplete(self._ports)])

    def cleanup_plugin(self) -> Conditions:
        return ActorList[v2.Deployment]([CleanupComplete(self._ports)])

    def steady_state_plugin(self) -> Conditions:
        return ActorList[v2.Deployment]([StateSteady(self._ports)])

    def parse_stage(self, deployment: v2.Deployment) -> v2.DeploymentStage:
        return parse_stage(deployment)

    async def health_check_gate(
        self, observability: ObservabilityContext, deployment: v2.Deployment
    ) -> bool:
        """Ask the gate; what it says is kept in annotations (serving guide)."""
        verdict = await ask_gate(self._ports, deployment)
        if verdict.answer is Answer.UNKNOWN:
            observability.logger.debug("health gate cannot be answered", reason=verdict.reason)
        remember_verdict(deployment, verdict, self._ports.clock.now())
        return verdict.answer is not Answer.FAILED

    async def get_state(
        self, _observability: ObservabilityContext, deployment: v2.Deployment
    ) -> v2.DeploymentStatus:
        """Return the status with the state, and its reason last in the message."""
        standing = await find_standing(self._ports, deployment)
        status = v2.DeploymentStatus.FromString(deployment.status.SerializeToString())
        status.state = standing.state
        status.message = with_note(status.message, standing.note, standing.text)
        return status

    async def populate_deployment_logs(
        self, context: RequestContext, deployment: v2.Deployment
    ) -> None:
        unmet = first_unmet(deployment.status.conditions)
        if unmet is not None:
            context.logger.error(
                "deployment terminal stage",
                condition=unmet.type,
                reason=unmet.reason,
                message=unmet.message,
            )

    async def populate_message(self, _context: RequestContext, deployment: v2.Deployment) -> None:
        """Keep why a rollout failed or was undone (behaviour 5.4, [design])."""
        said = without_note(deployment.status.message)
        deployment.status.message = said or _why_not_live(deployment)
        if _is_stuck(deployment):
            again = f"to try {candidate(deployment)} again, change the annotation {RETRY}"
            deployment.status.message = f"{deployment.status.message}; {again}"


def _why_not_live(deployment: v2.Deployment) -> str:
    """Say why a rollout was undone from what it left: reason, gate, conditions."""
    annotations = deployment.metadata.annotations
    reason = annotations.get(ROLLBACK_REASON, "") or stage_name(deployment.status.stage)
    unmet = first_unmet(deployment.status.conditions_snapshot)
    cause = ""
    if reason == ALERT_FIRED:
        cause = annotations.get(HEALTH_GATE_REASON, "")
    elif reason == ROLLOUT_FAILED and unmet is not None:
        cause = f"{unmet.type}: {unmet.message or unmet.reason}"
    text = f"{reason}: {describe_candidate(deployment)} is not live"
    return f"{text} ({cause})" if cause else text


def _is_stuck(deployment: v2.Deployment) -> bool:
    """Tell whether the wanted model has failed, so that it is not tried again by itself."""
    is_undone = deployment.status.stage == v2.DEPLOYMENT_STAGE_ROLLBACK_COMPLETE
    return is_undone and is_wanted(deployment) and not is_live(deployment)
