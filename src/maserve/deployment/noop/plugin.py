"""The nine methods of a Deployment plugin, each with the least it must do."""

from maserve.conditions import ActorList
from maserve.deployment.keys import current
from maserve.deployment.noop.actor import NoopActor
from maserve.deployment.plugin import Conditions, ObservabilityContext, RequestContext
from maserve.wire import v2

ROLLOUT = "NoopRolloutComplete"
ROLLBACK = "NoopRollbackComplete"
CLEANUP = "NoopCleanupComplete"
STEADY = "NoopStateSteady"

_STAGES = {
    ROLLOUT: v2.DEPLOYMENT_STAGE_ROLLOUT_COMPLETE,
    ROLLBACK: v2.DEPLOYMENT_STAGE_ROLLBACK_COMPLETE,
    CLEANUP: v2.DEPLOYMENT_STAGE_CLEAN_UP_COMPLETE,
}


class NoopPlugin:
    """One actor per lifecycle. A Deployment goes through every stage and nothing else happens."""

    async def get_state(
        self, _observability: ObservabilityContext, deployment: v2.Deployment
    ) -> v2.DeploymentStatus:
        """Return the Deployment's own status: HEALTHY once a rollout has completed."""
        status = v2.DeploymentStatus()
        status.CopyFrom(deployment.status)
        if current(deployment):
            status.state = v2.DEPLOYMENT_STATE_HEALTHY
        elif status.stage == v2.DEPLOYMENT_STAGE_CLEAN_UP_COMPLETE:
            status.state = v2.DEPLOYMENT_STATE_EMPTY
        else:
            status.state = v2.DEPLOYMENT_STATE_INITIALIZING
        return status

    async def health_check_gate(
        self, _observability: ObservabilityContext, _deployment: v2.Deployment
    ) -> bool:
        """Nothing is served, so nothing can be ill."""
        return True

    async def rollout_plugin(self, _deployment: v2.Deployment) -> Conditions:
        return _only(ROLLOUT)

    async def rollback_plugin(self, _deployment: v2.Deployment) -> Conditions:
        return _only(ROLLBACK)

    def cleanup_plugin(self) -> Conditions:
        return _only(CLEANUP)

    def steady_state_plugin(self) -> Conditions:
        return _only(STEADY)

    def parse_stage(self, deployment: v2.Deployment) -> v2.DeploymentStage:
        """Return the stage that the lifecycle's one condition completes; else it stays."""
        for condition in deployment.status.conditions:
            if condition.type in _STAGES:
                return _STAGES[condition.type]
        return deployment.status.stage

    async def populate_deployment_logs(
        self, _context: RequestContext, _deployment: v2.Deployment
    ) -> None:
        """Nothing fails here."""

    async def populate_message(self, _context: RequestContext, _deployment: v2.Deployment) -> None:
        """There is nothing to say."""


def _only(type_: str) -> Conditions:
    return ActorList[v2.Deployment]([NoopActor(type_)])
