"""Time that was seen to be well, and time that was not, from one look to the next. Pure.

Only what somebody saw counts: between two looks it was well if it was at both. Where nobody looked
for longer than `UNSEEN_S` (no control plane was running) neither is told, and nothing counts.
"""

from dataclasses import replace

from maserve.conditions import REQUEUE_S, Progress

UNSEEN_S = 3 * REQUEUE_S
"""A step in progress is looked at every `REQUEUE_S` at the latest, with some delay."""

_NOTED_S = REQUEUE_S
"""How often time that only goes on is written down: each writing makes another pass follow."""


def seen(progress: Progress, now_s: float, *, well: bool) -> Progress:
    """Return the record after a look that found it well, or not well."""
    goes_on = well != progress.held
    if progress.seen_at and goes_on and 0 <= now_s - progress.seen_at < _NOTED_S:
        return progress
    since_s = _since_s(progress, now_s)
    was_well = well and not progress.held
    return replace(
        progress,
        seen_at=now_s,
        held=not well,
        passed_s=progress.passed_s + since_s if was_well else 0.0,
        missed_s=progress.missed_s if was_well else progress.missed_s + since_s,
    )


def passed_s(progress: Progress, now_s: float) -> float:
    """Return for how long it has been well now, given that it is well at `now_s`."""
    return 0.0 if progress.held else progress.passed_s + _since_s(progress, now_s)


def missed_s(progress: Progress, now_s: float) -> float:
    """Return for how long it has not been well in all, given that it is not at `now_s`."""
    return progress.missed_s + (_since_s(progress, now_s) if progress.held else 0.0)


def _since_s(progress: Progress, now_s: float) -> float:
    """Return the seconds since the last look, 0 when it was the first or nobody looked for long."""
    gap_s = now_s - progress.seen_at if progress.seen_at else 0.0
    return gap_s if 0.0 <= gap_s <= UNSEEN_S else 0.0
