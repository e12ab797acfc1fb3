"""What the Deployment controller asks of a plugin.

The nine methods of the extension guide, section 2.
"""

from dataclasses import dataclass
from typing import Any, Protocol

from maserve.conditions import Plugin as ConditionPlugin
from maserve.wire import v2

Conditions = ConditionPlugin[v2.Deployment]
"""An ordered list of actors over a Deployment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestContext:
    """One reconcile: the Deployment and a logger bound to it."""

    deployment: v2.Deployment
    logger: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservabilityContext:
    """A logger and a scope for metrics."""

    logger: Any
    scope: object = None


class Plugin(Protocol):
    """Rolls out, rolls back, cleans up and watches Deployments of one target type and subtype.

    The plugin owns stage progress: the controller enters a COMPLETE stage only when `parse_stage`
    says so.
    """

    async def get_state(
        self, observability: ObservabilityContext, deployment: v2.Deployment
    ) -> v2.DeploymentStatus:
        """Return the full status (start from the Deployment's own) with `state` computed."""
        ...

    async def health_check_gate(
        self, observability: ObservabilityContext, deployment: v2.Deployment
    ) -> bool:
        """Tell whether a rollout may go on; may set annotations of the given copy."""
        ...

    async def rollout_plugin(self, deployment: v2.Deployment) -> Conditions:
        """Return the actors of a rollout as it stands."""
        ...

    async def rollback_plugin(self, deployment: v2.Deployment) -> Conditions:
        """Return the actors that restore the previous revision."""
        ...

    def cleanup_plugin(self) -> Conditions:
        """Return the actors that remove everything of the Deployment."""
        ...

    def steady_state_plugin(self) -> Conditions:
        """Return the actors that watch a completed Deployment."""
        ...

    def parse_stage(self, deployment: v2.Deployment) -> v2.DeploymentStage:
        """Compute the stage from the conditions."""
        ...

    async def populate_deployment_logs(
        self, context: RequestContext, deployment: v2.Deployment
    ) -> None:
        """Say where the details of a terminal failure are."""
        ...

    async def populate_message(self, context: RequestContext, deployment: v2.Deployment) -> None:
        """Set `status.message` on entering ROLLBACK_COMPLETE or ROLLOUT_FAILED."""
        ...
