"""`ModelCleanupComplete-<cluster>`: the previous model's entry is gone from the cluster."""

from maserve.deployment.keys import candidate
from maserve.deployment.stock.site import Site
from maserve.deployment.stock.step import Step
from maserve.resource import names
from maserve.wire import api, v2

TYPE = "ModelCleanupComplete"


class ModelCleanup(Step):
    """Removes every entry of this Deployment but the candidate's; traffic points away already.

    model-sync lets the data plane go before it unloads, so requests in flight are answered.
    """

    patient = True

    def __init__(self, site: Site) -> None:
        super().__init__(names.condition(TYPE, site.cluster), site.ports)
        self._site = site

    async def look(self, resource: v2.Deployment, previous: api.Condition) -> api.Condition:
        old = await self._site.old_models(candidate(resource))
        if not old:
            return self.done(previous)
        text = f"still listed in cluster {self._site.cluster}: {', '.join(old)}"
        return self.waiting(previous, text, "OldModelStillInConfig")

    async def act(self, resource: v2.Deployment, previous: api.Condition) -> api.Condition:
        old = await self._site.old_models(candidate(resource))
        for model in old:
            await self._site.remove_entry(model, "RemoveModelFromConfigFailed")
        text = f"unloading in cluster {self._site.cluster}: {', '.join(old)}"
        return self.waiting(previous, text, "ModelUnloading")
