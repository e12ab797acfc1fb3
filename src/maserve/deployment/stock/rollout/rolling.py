"""`RollingRolloutComplete-<cluster>`: the model is READY on every replica."""

from collections.abc import Sequence

from maserve.backends import find_failed, is_loaded
from maserve.conditions import read_progress
from maserve.deployment.keys import candidate
from maserve.deployment.stock.rollout.turn import NOT_YET, find_not_serving
from maserve.deployment.stock.site import Site
from maserve.deployment.stock.source import rollout_source
from maserve.deployment.stock.step import Step
from maserve.modelconfig import Phase
from maserve.resource import names
from maserve.wire import api, v2

TYPE = "RollingRolloutComplete"

_EVERYWHERE = (Phase.STAGED, Phase.SERVING)


class Rolling(Step):
    """Loads the model on every replica; one failed replica fails the rollout at once.

    Not before every cluster in `earlier` serves it.
    """

    timeout_reason = "ModelLoadTimeout"

    def __init__(self, site: Site, earlier: Sequence[Site] = ()) -> None:
        super().__init__(names.condition(TYPE, site.cluster), site.ports)
        self._site = site
        self._earlier = earlier
        self.budget_s = site.ports.settings.model_load_timeout_s

    async def look(self, resource: v2.Deployment, previous: api.Condition) -> api.Condition:
        if read_progress(previous).done:
            return self.done(previous)
        model = candidate(resource)
        entry = await self._site.find_entry(model)
        if entry is None or entry.phase not in _EVERYWHERE:
            text = f"model {model} is not staged in cluster {self._site.cluster}"
            return self.waiting(previous, text, "ModelLoadNotStarted")
        report = await self._site.load(model)
        if is_loaded(report):
            return self.latch(previous)
        return self.waiting(previous, self._site.describe_load(report), "ModelLoading")

    async def act(self, resource: v2.Deployment, previous: api.Condition) -> api.Condition:
        model = candidate(resource)
        entry = await self._site.find_entry(model)
        if entry is None or entry.phase not in _EVERYWHERE:
            if held := await find_not_serving(self._earlier, model):
                return self.waiting(previous, held, NOT_YET)
            path = await rollout_source(self.ports, resource)
            await self._site.put_entry(model, path, Phase.STAGED)
            text = f"model {model} loads on every replica of cluster {self._site.cluster}"
            return self.waiting(previous, text, "ModelLoading")
        report = await self._site.load(model)
        failed = find_failed(report)
        if failed is not None:
            text = self._site.describe_failure(model, failed)
            return self.failed(previous, text, "ModelLoadFailed")
        return self.waiting(previous, self._site.describe_load(report), "ModelLoading")
