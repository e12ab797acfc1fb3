"""Which replica another one shall take the place of, the template being the same. Pure (ADR 0020).

One at a time in a cluster: another replica is started, and only when that one is ready the old one
drains, as for a new template.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from maserve.base.keys import ReplicaName

BY_HAND = "asked for by hand"


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One replica that is not leaving.

    `trouble` says why only another replica helps, empty for none; `is_dead` that the trouble is a
    model that is dead, `is_well` that it admits traffic and has no trouble at all.
    """

    name: ReplicaName
    created: datetime | None
    is_well: bool
    is_settled: bool
    trouble: str = ""
    is_dead: bool = False


def choose(
    replicas: Sequence[Candidate], restarts: Mapping[str, datetime], *, may_heal: bool
) -> tuple[ReplicaName, str] | None:
    """Return the replica to replace now and why; None for none.

    Nothing is begun while another replica is on its way in or out. What somebody asked for comes
    first. By itself (`may_heal`: the back-off is over) a replica with a hung load goes, since it
    serves until its successor is ready; one with a dead model only while another is well: dead
    everywhere, another replica would be no better.
    """
    if not all(each.is_settled for each in replicas):
        return None
    for each in replicas:
        asked = restarts.get(each.name)
        if asked is not None and (each.created is None or each.created < asked):
            return each.name, BY_HAND
    if not may_heal:
        return None
    for each in replicas:
        others = [other for other in replicas if other is not each]
        if each.trouble and (not each.is_dead or any(other.is_well for other in others)):
            return each.name, each.trouble
    return None
