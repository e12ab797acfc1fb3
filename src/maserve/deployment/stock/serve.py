"""Making a cluster serve a model that is the Deployment's current one: for rollback and for repair.

The order is a rollout's: listed, loaded on every replica, required, verified, routed, and seen to
be: what comes after may take the other model away.
"""

from dataclasses import dataclass

from maserve.backends import find_failed, is_loaded, summary
from maserve.base.keys import ModelName
from maserve.deployment.keys import current
from maserve.deployment.stock.site import Site
from maserve.deployment.stock.source import current_source
from maserve.modelconfig import Phase
from maserve.wire import v2


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """How far a cluster is. `failure` is a replica's own word that it cannot load the model."""

    done: bool
    text: str = ""
    failure: str = ""


async def is_served(site: Site, model: ModelName) -> bool:
    """Tell whether the model's entry is serving and the data plane sends traffic to it."""
    entry = await site.find_entry(model)
    return entry is not None and entry.phase == Phase.SERVING and await site.is_routed(model)


async def serve(site: Site, deployment: v2.Deployment, reason: str) -> Serving:
    """Take the next step towards serving the current model; call again until done.

    `reason` names a failed route change. Raises `Trouble`.
    """
    loading = await load(site, deployment)
    return await _switch(site, current(deployment), reason) if loading.done else loading


async def load(site: Site, deployment: v2.Deployment) -> Serving:
    """Take the next step towards having the current model loaded on every replica; no route moves.

    An entry that is missing comes back as staged: nothing is required of a replica before it has
    it. Only then the Model must still be there. Raises `Trouble`.
    """
    model = current(deployment)
    entry = await site.find_entry(model)
    if entry is None:
        path = await current_source(site.ports, deployment)
        await site.put_entry(model, path, Phase.STAGED)
        return Serving(done=False, text=f"loading model {model} in cluster {site.cluster}")
    if entry.phase not in (Phase.STAGED, Phase.SERVING):
        await site.put_entry(model, entry.storage_path, Phase.STAGED)
    report = await site.load(model)
    failed = find_failed(report)
    if failed is not None:
        return Serving(done=False, failure=site.describe_failure(model, failed))
    if not is_loaded(report):
        return Serving(done=False, text=site.describe_load(report))
    return Serving(done=True)


async def _switch(site: Site, model: ModelName, reason: str) -> Serving:
    entry = await site.find_entry(model)
    if entry is not None and entry.phase != Phase.SERVING:
        await site.promote(entry)
        report = await site.load(model)
        if not is_loaded(report):
            return Serving(done=False, text=f"verifying model {model}: {summary(report)}")
    await site.route_to(model, reason)
    if not await site.is_routed(model):
        text = f"traffic of cluster {site.cluster} is switching to model {model}"
        return Serving(done=False, text=text)
    return Serving(done=True)
