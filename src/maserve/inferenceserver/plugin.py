"""What the InferenceServer controller asks of its one plugin (extension guide, section 3)."""

from typing import Protocol

from maserve.conditions import Plugin as ConditionPlugin
from maserve.wire import v2

Conditions = ConditionPlugin[v2.InferenceServer]
"""An ordered list of actors over an InferenceServer."""


class Plugin(Protocol):
    """Creates and deletes an InferenceServer's infrastructure. One per control plane."""

    def creation_plugin(self, resource: v2.InferenceServer) -> Conditions:
        """Return the actors that bring the server up and keep it up."""
        ...

    def deletion_plugin(self, resource: v2.InferenceServer) -> Conditions:
        """Return the actors that remove everything of the server."""
        ...

    def parse_state(self, resource: v2.InferenceServer) -> v2.InferenceServerState:
        """Compute `status.state` from the conditions."""
        ...

    async def update_details(self, resource: v2.InferenceServer) -> None:
        """Refresh what the status tells about the world; called first, errors are logged only."""
        ...

    def update_conditions(self, resource: v2.InferenceServer, chosen: Conditions) -> None:
        """Drop conditions that do not belong to the chosen plugin."""
        ...
