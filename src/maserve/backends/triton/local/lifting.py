"""Which required models a cluster's replicas need not have to take traffic. Pure (ADR 0017).

Readiness protects a rollout; it must never empty a cluster. Where a required model cannot be had on
any replica, holding all of them out protects nobody and takes every other model away.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from maserve.base.keys import ModelName

Models = frozenset[ModelName]


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """What one replica that runs and answers has: models READY, and those not expected soon.

    `hopeless` ones failed to load there, or have been missing for too long.
    """

    ready: Models
    hopeless: Models


def decide_lifted(before: Models, serving: Models, replicas: Sequence[Holding]) -> Models:
    """Return the serving models that are not required now, given those that were not `before`.

    A requirement comes back once a replica would be ready with it. Nothing is lifted while a
    replica is ready, or may still become so by itself. Then what every replica lacks for good is
    lifted, and if that makes none ready, what the replica lacks that lacks least.
    """
    lifted = _without_those_that_are_back(before & serving, serving, replicas)
    if not replicas or _may_be_ready(serving - lifted, replicas):
        return lifted
    everywhere = frozenset.intersection(*(each.hopeless for each in replicas)) & serving
    lifted |= everywhere
    if _may_be_ready(serving - lifted, replicas):
        return lifted
    lacking = [(serving - lifted) & each.hopeless for each in replicas]
    return lifted | min(lacking, key=len)


def _without_those_that_are_back(
    lifted: Models, serving: Models, replicas: Sequence[Holding]
) -> Models:
    for model in sorted(lifted):
        required = serving - (lifted - {model})
        if any(required <= each.ready for each in replicas):
            lifted -= {model}
    return lifted


def _may_be_ready(required: Models, replicas: Sequence[Holding]) -> bool:
    """Tell whether a replica has all that is required, or lacks only what it may still get."""
    return any(not (required - each.ready) & each.hopeless for each in replicas)
