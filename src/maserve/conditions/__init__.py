"""Condition actors, plugins and the engine that drives them (extension guide, section 1).

Invariant: knows no kind of resource and does no I/O of its own. FALSE means failed, UNKNOWN in
progress.
"""

from maserve.conditions.actor_list import ActorList, keep_conditions
from maserve.conditions.engine import REQUEUE_S, Result, run_engine
from maserve.conditions.protocol import ConditionActor, Plugin, Timed
from maserve.conditions.status import (
    FALSE,
    KILL_REASON,
    TRUE,
    UNKNOWN,
    Progress,
    false_condition,
    find_condition,
    first_unmet,
    put_condition,
    read_progress,
    true_condition,
    unknown_condition,
    write_progress,
)

__all__ = [
    "FALSE",
    "KILL_REASON",
    "REQUEUE_S",
    "TRUE",
    "UNKNOWN",
    "ActorList",
    "ConditionActor",
    "Plugin",
    "Progress",
    "Result",
    "Timed",
    "false_condition",
    "find_condition",
    "first_unmet",
    "keep_conditions",
    "put_condition",
    "read_progress",
    "run_engine",
    "true_condition",
    "unknown_condition",
    "write_progress",
]
