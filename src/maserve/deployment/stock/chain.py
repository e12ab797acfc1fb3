"""The steps of a rollout, in order (serving guide, Rollout Stages)."""

from maserve.conditions import TRUE, find_condition, read_progress
from maserve.deployment.places import candidate_server, other_servers
from maserve.deployment.stock.ports import Ports
from maserve.deployment.stock.rollout import canary, previous_server_cleanup, soak, traffic
from maserve.deployment.stock.rollout.assets_prepared import AssetsPrepared
from maserve.deployment.stock.rollout.discovery_routing import DiscoveryRouting
from maserve.deployment.stock.rollout.model_cleanup import ModelCleanup
from maserve.deployment.stock.rollout.placement_prepared import PlacementPrepared
from maserve.deployment.stock.rollout.previous_server_cleanup import PreviousServerCleanup
from maserve.deployment.stock.rollout.rolling import Rolling
from maserve.deployment.stock.rollout.rollout_complete import RolloutComplete
from maserve.deployment.stock.rollout.skipped import Skipped
from maserve.deployment.stock.rollout.validated import Validated
from maserve.deployment.stock.site import Site
from maserve.deployment.stock.step import Step
from maserve.deployment.stock.strategy import Pace
from maserve.resource import names
from maserve.wire import api, v2

_NO_CANARY = "the strategy or deployment.rollout.skipCanary leaves it out"
_NO_SOAK = "there is no soak period, or the strategy leaves it out"


def rollout_steps(
    ports: Ports, deployment: v2.Deployment, sites: tuple[Site, ...], pace: Pace
) -> list[Step]:
    """Return every step; those of a cluster are there once it has been placed.

    Once the model has been live everywhere, no step fails any more (ADR 0023).
    """
    steps: list[Step] = [Validated(ports), AssetsPrepared(ports), PlacementPrepared(ports)]
    for number, site in enumerate(sites):
        steps += _cluster_steps(site, sites[:number], pace)
    steps.append(DiscoveryRouting(ports))
    steps += [ModelCleanup(site) for site in sites]
    if _has_moved(deployment):
        steps.append(PreviousServerCleanup(ports))
    steps.append(RolloutComplete(ports, len(sites)))
    if _has_gone_live(deployment, sites):
        for step in steps:
            step.be_patient()
    return steps


def _has_moved(deployment: v2.Deployment) -> bool:
    """Tell whether another server may hold something, or did when this rollout began."""
    was_asked = find_condition(deployment.status.conditions, previous_server_cleanup.TYPE)
    return was_asked is not None or bool(other_servers(deployment, candidate_server(deployment)))


def _has_gone_live(deployment: v2.Deployment, sites: tuple[Site, ...]) -> bool:
    """Tell whether every cluster has been switched and has soaked in this rollout."""
    conditions = {each.type: each for each in deployment.status.conditions}
    unmet = api.Condition()
    return bool(sites) and all(
        read_progress(conditions.get(names.condition(traffic.TYPE, site.cluster), unmet)).done
        and conditions.get(names.condition(soak.TYPE, site.cluster), unmet).status == TRUE
        for site in sites
    )


def _cluster_steps(site: Site, earlier: tuple[Site, ...], pace: Pace) -> list[Step]:
    """Return the steps of one cluster; one that is left out is there and says so."""
    first: Step = Skipped(names.condition(canary.TYPE, site.cluster), site.ports, _NO_CANARY)
    last: Step = Skipped(names.condition(soak.TYPE, site.cluster), site.ports, _NO_SOAK)
    if pace.canary:
        first = canary.Canary(site, earlier)
    if pace.soak_s > 0:
        last = soak.Soak(site, pace.soak_s)
    return [first, Rolling(site, earlier), traffic.Traffic(site), last]
