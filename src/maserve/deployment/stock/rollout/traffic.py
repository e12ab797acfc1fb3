"""`TrafficRoutingConfigured-<cluster>`: required for readiness, verified again, route flipped."""

from maserve.backends import find_failed, is_loaded
from maserve.base.keys import ModelName
from maserve.conditions import read_progress
from maserve.deployment.keys import candidate
from maserve.deployment.stock.site import Site
from maserve.deployment.stock.source import resolve_source
from maserve.deployment.stock.step import Step
from maserve.modelconfig import Phase
from maserve.resource import names
from maserve.wire import api, v2

TYPE = "TrafficRoutingConfigured"


class Traffic(Step):
    """Promotes the entry.

    Verifies every replica, and only then flips (serving guide, Traffic switch).
    """

    timeout_reason = "TrafficRoutingTimeout"

    def __init__(self, site: Site) -> None:
        super().__init__(names.condition(TYPE, site.cluster), site.ports)
        self._site = site
        self.budget_s = site.ports.settings.model_load_timeout_s

    async def look(self, resource: v2.Deployment, previous: api.Condition) -> api.Condition:
        model = candidate(resource)
        entry = await self._site.find_entry(model)
        if entry is None or entry.phase != Phase.SERVING:
            text = f"model {model} is not required yet in cluster {self._site.cluster}"
            return self.waiting(previous, text, "ModelNotPromoted")
        if await self._site.is_routed(model):
            return await self._judge(previous, model)
        text = f"traffic of cluster {self._site.cluster} does not go to model {model} yet"
        return self.waiting(previous, text, "TrafficRouteNotReady")

    async def _judge(self, previous: api.Condition, model: ModelName) -> api.Condition:
        """Believe the switch once a request from outside was answered by the model."""
        if read_progress(previous).done:
            return self.done(previous)
        answering = await self._site.find_answering_model()
        if answering in (model, None):
            return self.latch(previous)
        who = f"model {answering}" if answering else "no model"
        text = f"a request to cluster {self._site.cluster} is answered by {who}, not by {model}"
        return self.waiting(previous, text, "TrafficNotSwitched")

    async def act(self, resource: v2.Deployment, previous: api.Condition) -> api.Condition:
        model = candidate(resource)
        entry = await self._site.find_entry(model)
        if entry is None:
            return await self._miss(resource, previous)
        if entry.phase != Phase.SERVING:
            await self._site.promote(entry)
        report = await self._site.load(model)
        failed = find_failed(report)
        if failed is not None:
            text = (
                f"model {model} failed in cluster {self._site.cluster} on replica "
                f"{failed.replica} before the switch: {failed.reason}"
            )
            return self.failed(previous, text, "ModelLoadFailed")
        if not is_loaded(report):
            text = self._site.describe_load(report)
            return self.waiting(previous, text, "WaitingForReplicas")
        await self._site.route_to(model, "TrafficRouteUpsertFailed")
        text = f"traffic of cluster {self._site.cluster} is switching to model {model}"
        return self.waiting(previous, text, "TrafficRouteNotReady")

    async def _miss(self, resource: v2.Deployment, previous: api.Condition) -> api.Condition:
        """Fail for an entry that somebody has removed; of a model that is live make it again."""
        model = candidate(resource)
        if self.patient:
            path = await resolve_source(self.ports, resource, resource.status.candidate_revision)
            await self._site.put_entry(model, path, Phase.STAGED)
        text = f"the entry of model {model} is gone from cluster {self._site.cluster}"
        return self.failed(previous, text, "ModelEntryMissing")
