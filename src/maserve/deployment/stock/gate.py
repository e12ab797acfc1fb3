"""The health gate of one Deployment, and what of its answers has to be remembered."""

from datetime import datetime

from maserve.deployment.stock.placement import candidate_place
from maserve.deployment.stock.ports import Ports
from maserve.deployment.stock.sites import list_placed
from maserve.gates import Answer, Verdict
from maserve.resource.annotations import HEALTH_GATE_REASON, HEALTH_GATE_SHORT_SINCE
from maserve.resource.metadata import set_annotation
from maserve.wire import v2


async def ask_gate(ports: Ports, deployment: v2.Deployment) -> Verdict:
    """Ask the gate about every cluster of the placement snapshot. Raises `Unsupported`.

    It judges where the rollout works. A Deployment that moves has changed nothing yet where it is
    served: trouble there must not keep it from leaving (ADR 0016).
    """
    place = candidate_place(deployment)
    return await ports.gate.judge(
        ports.backends.get(place.backend_type),
        place.server,
        tuple(site.target for site in await list_placed(ports, deployment, place)),
        deployment.metadata.name,
        short_since=_short_since(deployment),
    )


def remember_verdict(deployment: v2.Deployment, verdict: Verdict, now: datetime) -> None:
    """Record why the gate failed, and since when a replica is missing.

    The latter makes the patience with it end, over restarts too. What nobody could tell changes
    nothing. `deployment` is the caller's own copy.
    """
    if verdict.answer is Answer.UNKNOWN:
        return
    failed = verdict.answer is Answer.FAILED
    set_annotation(deployment, HEALTH_GATE_REASON, verdict.reason if failed else None)
    since = (_short_since(deployment) or now).isoformat() if verdict.is_short else None
    set_annotation(deployment, HEALTH_GATE_SHORT_SINCE, since)


def _short_since(deployment: v2.Deployment) -> datetime | None:
    """Return the recorded time; a damaged record is none."""
    text = deployment.metadata.annotations.get(HEALTH_GATE_SHORT_SINCE, "")
    try:
        since = datetime.fromisoformat(text)
    except ValueError:
        return None
    return since if since.tzinfo is not None else None
