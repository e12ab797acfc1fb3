"""`AssetsPrepared`: the model resolves to files that are there.

The path is recorded: all of this rollout loads from it, whatever becomes of the Model meanwhile.
"""

from dataclasses import replace

from maserve.conditions import read_progress, write_progress
from maserve.deployment.keys import candidate
from maserve.deployment.stock.ports import Ports
from maserve.deployment.stock.source import ASSETS_PREPARED, check_artifact, resolve_source
from maserve.deployment.stock.step import Step
from maserve.wire import api, v2


class AssetsPrepared(Step):
    """A model that cannot be resolved fails at once, a lookup that fails is retried."""

    timeout_reason = "ModelResolutionFailed"

    def __init__(self, ports: Ports) -> None:
        super().__init__(ASSETS_PREPARED, ports)
        self.budget_s = ports.settings.model_load_timeout_s

    async def look(self, _resource: v2.Deployment, previous: api.Condition) -> api.Condition:
        if read_progress(previous).done:
            return self.done(previous)
        return self.waiting(previous, "not resolved yet", "ModelNotResolved")

    async def act(self, resource: v2.Deployment, previous: api.Condition) -> api.Condition:
        path = await resolve_source(self.ports, resource, resource.status.candidate_revision)
        await check_artifact(self.ports, candidate(resource), path)
        write_progress(previous, replace(read_progress(previous), source=path))
        return self.latch(previous)
