"""Whose turn it is: a cluster begins only while every earlier one serves the model healthily.

Source: serving guide, Deployment Lifecycle. Asked at the step that begins, and not remembered: what
was seen of the earlier cluster when it was done says nothing about now (ADR 0022).
"""

from collections.abc import Sequence

from maserve.backends import is_loaded
from maserve.base.keys import ModelName
from maserve.deployment.stock.serve import is_served
from maserve.deployment.stock.site import Site

NOT_YET = "EarlierClusterNotServing"


async def find_not_serving(earlier: Sequence[Site], model: ModelName) -> str:
    """Say which earlier cluster does not serve the model healthily; empty when all do.

    Healthily: required, loaded on every replica, routed, and a request from outside is answered by
    it. Only this model is judged, as by the health gate. Raises `Trouble`.
    """
    for site in earlier:
        if not await is_served(site, model):
            return f"cluster {site.cluster} does not serve model {model}"
        report = await site.load(model)
        if not is_loaded(report):
            return site.describe_load(report)
        answering = await site.find_answering_model()
        if answering not in (model, None):
            who = f"model {answering}" if answering else "no model"
            return f"a request to cluster {site.cluster} is answered by {who}, not by {model}"
    return ""
