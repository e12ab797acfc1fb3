"""Which replicas to start and to drain next. Pure.

Like a ReplicaSet with a rolling update: at most one replica more than wanted, and never one fewer
that is ready because of us.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from itertools import count, islice

from maserve.base.keys import ReplicaName

START_AT_ONCE = 16
"""So many replicas may be on their way up: a wrong number in a spec must not stop the machine."""


class Life(StrEnum):
    """Where a replica is in its life; one that is gone is not listed any more."""

    STARTING = "STARTING"
    RUNNING = "RUNNING"
    FAILED = "FAILED"
    DRAINING = "DRAINING"


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What the decision needs to know of one replica."""

    name: ReplicaName
    ordinal: int
    template: str
    life: Life
    ready: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Ordinals to start, in order, and replicas to drain."""

    start: tuple[int, ...] = ()
    drain: tuple[ReplicaName, ...] = ()


def decide(wanted: int, template: str, replicas: Iterable[Standing]) -> Plan:
    """Return the next step from what is there to `wanted` replicas of `template`.

    Scaling up starts what misses, a bounded number at a time, at the lowest ordinals that are free.
    Scaling down drains those that are not ready first, then the highest ordinals. Another template
    replaces one at a time: one more is started, only when it is ready one old replica drains, and
    the next waits until that one is gone.
    """
    present = tuple(replicas)
    live = tuple(one for one in present if one.life is not Life.DRAINING)
    stale = tuple(one for one in live if one.template != template)
    if len(live) < wanted:
        room = START_AT_ONCE - len(_pending(live, template))
        return Plan(start=_free_ordinals(present, max(0, min(wanted - len(live), room))))
    if stale:
        return _decide_roll(wanted, template, present, stale)
    return Plan(drain=_victims(live, len(live) - wanted))


def _decide_roll(
    wanted: int, template: str, present: tuple[Standing, ...], stale: tuple[Standing, ...]
) -> Plan:
    """Decide while some replica still has another template and none is missing."""
    live = tuple(one for one in present if one.life is not Life.DRAINING)
    surplus = len(live) - len(_pending(live, template)) - wanted
    if surplus > 0:
        return Plan(drain=_victims(stale, surplus))
    if len(live) > wanted or len(live) < len(present):
        return Plan()
    return Plan(start=_free_ordinals(present, 1))


def _pending(live: tuple[Standing, ...], template: str) -> tuple[Standing, ...]:
    """Return those on their way up; one with an older template is nobody's hope any more."""
    return tuple(one for one in live if one.template == template and not one.ready)


def _victims(candidates: tuple[Standing, ...], number: int) -> tuple[ReplicaName, ...]:
    order = sorted(candidates, key=lambda one: (one.ready, -one.ordinal))
    return tuple(one.name for one in order[:number])


def _free_ordinals(present: tuple[Standing, ...], number: int) -> tuple[int, ...]:
    taken = {one.ordinal for one in present}
    return tuple(islice((ordinal for ordinal in count() if ordinal not in taken), number))
