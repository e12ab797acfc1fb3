"""The controller runtime: from a change somewhere to one pass over the object it concerns.

Informers keep caches warm through watches, sources turn changes and announcements into keys, a
queue hands each key to one worker at a time, a controller retries what fails, the manager starts
and stops it all. Knows no kinds and no ports but the store.

**Invariants:** one worker per key; no key is lost; a pass may be killed at any line and run again;
a failing watch or pass is retried for ever; nobody polls.
"""

from maserve.runtime.cache import Index, Transition
from maserve.runtime.controller import Controller, ControllerSettings, Reconcile
from maserve.runtime.events import EventRecorder, EventSettings, LoggingRecorder
from maserve.runtime.informer import Informer, InformerSettings
from maserve.runtime.leadership import AlwaysLeader, Leadership
from maserve.runtime.manager import Manager, ManagerSettings, Part, Source, Worker
from maserve.runtime.metrics import ControllerMetrics, Metrics
from maserve.runtime.outcome import After, Again, Done, Outcome, Stop
from maserve.runtime.queue import RETRY_BACKOFF, WorkQueue
from maserve.runtime.sources import (
    Enqueue,
    enqueue_announced,
    enqueue_changed,
    enqueue_related,
    keys_by,
)
from maserve.runtime.writethrough import WriteThroughStore

__all__ = [
    "Outcome",
    "Done",
    "Again",
    "After",
    "Stop",
    "Controller",
    "ControllerSettings",
    "Reconcile",
    "WorkQueue",
    "RETRY_BACKOFF",
    "Informer",
    "InformerSettings",
    "Transition",
    "Index",
    "WriteThroughStore",
    "Enqueue",
    "enqueue_changed",
    "enqueue_related",
    "enqueue_announced",
    "keys_by",
    "EventRecorder",
    "LoggingRecorder",
    "EventSettings",
    "Metrics",
    "ControllerMetrics",
    "Manager",
    "ManagerSettings",
    "Part",
    "Source",
    "Worker",
    "Leadership",
    "AlwaysLeader",
]
