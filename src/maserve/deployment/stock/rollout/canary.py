"""`CanaryRolloutComplete-<cluster>`: the model is READY on one running replica."""

from dataclasses import replace

from maserve.backends import LoadReport, LoadState, ReplicaLoad, summary
from maserve.base.keys import ModelName
from maserve.conditions import read_progress, write_progress
from maserve.deployment.keys import candidate
from maserve.deployment.stock.site import Site
from maserve.deployment.stock.source import rollout_source
from maserve.deployment.stock.step import Step
from maserve.modelconfig import Entry, Phase
from maserve.resource import names
from maserve.wire import api, v2

TYPE = "CanaryRolloutComplete"


class Canary(Step):
    """Loads the model on the first running replica by name and keeps to it while it runs.

    A replica that disappears is replaced by another until the budget ends. The entry itself
    remembers the choice, so a lost record does not move the canary.
    """

    timeout_reason = "CanaryLoadTimeout"

    def __init__(self, site: Site) -> None:
        super().__init__(names.condition(TYPE, site.cluster), site.ports)
        self._site = site
        self.budget_s = site.ports.settings.model_load_timeout_s

    async def look(self, resource: v2.Deployment, previous: api.Condition) -> api.Condition:
        if read_progress(previous).done:
            return self.done(previous)
        model = candidate(resource)
        entry = await self._site.find_entry(model)
        if entry is None:
            text = f"model {model} is not started in cluster {self._site.cluster}"
            return self.waiting(previous, text, "CanaryNotStarted")
        if entry.phase != Phase.CANARY:
            return self.latch(previous)
        report = await self._site.load(model)
        row = _find_row(report, entry)
        if row is not None and row.running and row.state is LoadState.READY:
            return self.latch(previous)
        return self.waiting(previous, self._progress(model, entry, report), "CanaryLoading")

    async def act(self, resource: v2.Deployment, previous: api.Condition) -> api.Condition:
        model = candidate(resource)
        entry = await self._site.find_entry(model)
        report = await self._site.load(model)
        row = None if entry is None else _find_row(report, entry)
        if entry is not None and row is not None and row.state is LoadState.FAILED:
            text = self._site.describe_failure(model, row)
            return self.failed(previous, text, "CanaryLoadFailed")
        if entry is not None and row is not None and row.running:
            return self.waiting(previous, self._progress(model, entry, report), "CanaryLoading")
        return await self._pick(resource, previous, report)

    async def _pick(
        self, resource: v2.Deployment, previous: api.Condition, report: LoadReport
    ) -> api.Condition:
        model = candidate(resource)
        chosen = next((row for row in report.rows if row.running), None)
        if chosen is None:
            text = f"no replica runs in cluster {self._site.cluster}: {summary(report)}"
            return self.waiting(previous, text, "CanaryReplicaMissing")
        path = await rollout_source(self.ports, resource)
        await self._site.put_entry(model, path, Phase.CANARY, chosen.replica)
        write_progress(previous, replace(read_progress(previous), replica=str(chosen.replica)))
        text = f"model {model} loads on replica {chosen.replica} of cluster {self._site.cluster}"
        return self.waiting(previous, text, "CanaryLoading")

    def _progress(self, model: ModelName, entry: Entry, report: LoadReport) -> str:
        row = _find_row(report, entry)
        state = "gone" if row is None else f"{row.state} {row.reason}".strip()
        where = f"replica {entry.canary_pod} of cluster {self._site.cluster}"
        return f"model {model} on {where}: {state}"


def _find_row(report: LoadReport, entry: Entry) -> ReplicaLoad | None:
    return next((row for row in report.rows if row.replica == entry.canary_pod), None)
