"""`CanaryRolloutComplete-<cluster>`: the model is READY on one running replica."""

from collections.abc import Sequence
from dataclasses import replace

from maserve.backends import LoadReport, LoadState, ReplicaLoad, summary
from maserve.conditions import read_progress, write_progress
from maserve.deployment.keys import candidate
from maserve.deployment.stock.rollout.turn import NOT_YET, find_not_serving
from maserve.deployment.stock.site import Site
from maserve.deployment.stock.source import rollout_source
from maserve.deployment.stock.step import Step
from maserve.modelconfig import Entry, Phase
from maserve.resource import names
from maserve.wire import api, v2

TYPE = "CanaryRolloutComplete"

_EVERYWHERE = (Phase.STAGED, Phase.SERVING)


class Canary(Step):
    """Loads the model on the first running replica by name and keeps to it while it runs.

    Not before every cluster in `earlier` serves it.
    A replica that disappears is replaced by another until the budget ends. The entry itself
    remembers the choice, so a lost record does not move the canary. An entry that is further
    already is on every replica: any of them is the canary.
    """

    timeout_reason = "CanaryLoadTimeout"

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
        if entry is None:
            text = f"model {model} is not started in cluster {self._site.cluster}"
            return self.waiting(previous, text, "CanaryNotStarted")
        report = await self._site.load(model)
        rows = _canaries(report, entry)
        if any(row.running and row.state is LoadState.READY for row in rows):
            return self.latch(previous)
        return self.waiting(previous, self._progress(entry, report), "CanaryLoading")

    async def act(self, resource: v2.Deployment, previous: api.Condition) -> api.Condition:
        model = candidate(resource)
        entry = await self._site.find_entry(model)
        report = await self._site.load(model)
        rows = () if entry is None else _canaries(report, entry)
        if failed := next((row for row in rows if row.state is LoadState.FAILED), None):
            text = self._site.describe_failure(model, failed)
            return self.failed(previous, text, "CanaryLoadFailed")
        if entry is not None and (entry.phase in _EVERYWHERE or any(row.running for row in rows)):
            return self.waiting(previous, self._progress(entry, report), "CanaryLoading")
        return await self._pick(resource, previous, report)

    async def _pick(
        self, resource: v2.Deployment, previous: api.Condition, report: LoadReport
    ) -> api.Condition:
        model = candidate(resource)
        if held := await find_not_serving(self._earlier, model):
            return self.waiting(previous, held, NOT_YET)
        chosen = next((row for row in report.rows if row.running), None)
        if chosen is None:
            text = f"no replica runs in cluster {self._site.cluster}: {summary(report)}"
            return self.waiting(previous, text, "CanaryReplicaMissing")
        path = await rollout_source(self.ports, resource)
        await self._site.put_entry(model, path, Phase.CANARY, chosen.replica)
        write_progress(previous, replace(read_progress(previous), replica=str(chosen.replica)))
        text = f"model {model} loads on replica {chosen.replica} of cluster {self._site.cluster}"
        return self.waiting(previous, text, "CanaryLoading")

    def _progress(self, entry: Entry, report: LoadReport) -> str:
        if entry.phase in _EVERYWHERE:
            return self._site.describe_load(report)
        row = next(iter(_canaries(report, entry)), None)
        state = "gone" if row is None else f"{row.state} {row.reason}".strip()
        where = f"replica {entry.canary_pod} of cluster {self._site.cluster}"
        return f"model {report.model} on {where}: {state}"


def _canaries(report: LoadReport, entry: Entry) -> tuple[ReplicaLoad, ...]:
    """Return the replicas of which one has to have the model: those that the entry wants it on."""
    return tuple(row for row in report.rows if entry.is_wanted_on(row.replica))
