"""`RollbackComplete-<cluster>`.

The cluster serves the previous model and the candidate is gone from it.
"""

from collections.abc import Sequence
from contextlib import suppress

from maserve.backends import is_loaded
from maserve.base.keys import ModelName
from maserve.conditions import read_progress
from maserve.deployment.keys import candidate, current
from maserve.deployment.stock.serve import is_served, load, serve
from maserve.deployment.stock.site import Site, Trouble
from maserve.deployment.stock.step import Step
from maserve.modelconfig import Phase
from maserve.resource import names
from maserve.wire import api, v2

TYPE = "RollbackComplete"


class Restored(Step):
    """A rollout backwards.

    Previous model ready everywhere, route back, then the candidate's entry out.

    Without a previous model the route is removed instead (serving guide, Health Gates and
    Rollback). A previous model that a lost status no longer names is recognized by its entry and
    recorded again, so that it is not taken away.

    No route goes back before the previous model is loaded in `others` too, as far as they can
    (ADR 0023): where it is gone already, it comes back in all clusters at the same time.
    """

    timeout_reason = "RollbackTimeout"

    def __init__(self, site: Site, others: Sequence[Site] = ()) -> None:
        super().__init__(names.condition(TYPE, site.cluster), site.ports)
        self._site = site
        self._others = others
        self._patience_s = site.ports.settings.rollback_model_load_timeout_s
        self.budget_s = self._patience_s

    async def look(self, resource: v2.Deployment, previous: api.Condition) -> api.Condition:
        back = current(resource)
        if not back and (forgotten := await self._find_forgotten(resource)):
            text = f"cluster {self._site.cluster} serves model {forgotten}, which the status forgot"
            return self.waiting(previous, text, "PreviousModelNotRecorded")
        if back:
            if not await is_served(self._site, back):
                text = f"cluster {self._site.cluster} does not serve model {back} again yet"
                return self.waiting(previous, text, "PreviousModelNotServing")
        elif await self._site.has_rule():
            text = f"cluster {self._site.cluster} still routes to model {candidate(resource)}"
            return self.waiting(previous, text, "TrafficRouteStillPresent")
        left = await self._site.old_models(back)
        if left:
            text = f"still listed in cluster {self._site.cluster}: {', '.join(left)}"
            return self.waiting(previous, text, "CandidateStillInModelConfig")
        return await self._confirm(previous, back)

    async def _confirm(self, previous: api.Condition, back: ModelName) -> api.Condition:
        """Make it TRUE once every replica has been seen with the previous model."""
        if not back or read_progress(previous).done:
            return self.done(previous)
        report = await self._site.load(back)
        if is_loaded(report):
            return self.latch(previous)
        text = self._site.describe_load(report)
        return self.waiting(previous, text, "RestoringPreviousModel")

    async def act(self, resource: v2.Deployment, previous: api.Condition) -> api.Condition:
        if not current(resource) and (forgotten := await self._find_forgotten(resource)):
            namespace = resource.status.candidate_revision.namespace
            found = api.ResourceIdentifier(name=forgotten, namespace=namespace)
            resource.status.current_revision.CopyFrom(found)
        back = current(resource)
        if back:
            waiting = await self._restore(resource, previous)
            if waiting is not None:
                return waiting
        else:
            await self._site.unroute("TrafficRouteRemovalFailed")
        for model in await self._site.old_models(back):
            await self._site.remove_entry(model, "RemoveCandidateModelFailed")
        text = f"cluster {self._site.cluster} is restored"
        return self.waiting(previous, text, "RestoringPreviousModel")

    async def _find_forgotten(self, resource: v2.Deployment) -> ModelName | None:
        """Return a model besides the candidate that this Deployment serves here, None if none."""
        for entry in await self._site.entries_left():
            if entry.name == candidate(resource) or entry.phase != Phase.SERVING:
                continue
            if await self._site.is_routed(entry.name):
                return entry.name
            if is_loaded(await self._site.load(entry.name)):
                return entry.name
        return None

    async def _restore(
        self, resource: v2.Deployment, previous: api.Condition
    ) -> api.Condition | None:
        """Bring the previous model back; return the condition while that is not done."""
        held = await self._load_elsewhere(resource, previous)
        if held:
            serving = await load(self._site, resource)
        else:
            serving = await serve(self._site, resource, "TrafficRouteRestoreFailed")
        if serving.failure:
            return self.failed(previous, serving.failure, "PreviousModelLoadFailed")
        if held or not serving.done:
            return self.waiting(previous, serving.text or held, "RestoringPreviousModel")
        return None

    async def _load_elsewhere(self, resource: v2.Deployment, previous: api.Condition) -> str:
        """Have the previous model loaded in the other clusters; say what is waited for there.

        Nothing where the route has gone back here already, and when the budget is spent. A cluster
        that serves it, that is away, or that cannot load it is not waited for.
        """
        back = current(resource)
        if await is_served(self._site, back) or self.elapsed_s(previous) >= self._patience_s:
            return ""
        awaited: list[str] = []
        for other in self._others:
            with suppress(Trouble):
                if not await is_served(other, back):
                    loading = await load(other, resource)
                    awaited.append(loading.text)
        return "; ".join(text for text in awaited if text)


async def can_restore(site: Site, back: ModelName) -> bool:
    """Tell whether nothing has to be waited for here.

    Such clusters are restored first: one that is away, or that cannot load the previous model any
    more, keeps no other one with the candidate.
    """
    try:
        await site.entries_left()
        return not back or is_loaded(await site.load(back))
    except Trouble:
        return False
