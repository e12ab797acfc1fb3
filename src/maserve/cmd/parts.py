"""What the modules of one process share: its long-running parts and what wakes its controllers."""

from dataclasses import dataclass, field

from maserve.base.keys import Key
from maserve.base.signals import Signal
from maserve.runtime import Part, Source, Worker


class ServerChanged(Signal[Key]):
    """Announces the key of an InferenceServer of which something moved in the world."""


@dataclass(slots=True, kw_only=True)
class Parts:
    """Filled by the modules' invokes, run by the manager in the order of its lists."""

    clients: list[Part] = field(default_factory=list)
    sources: list[Source] = field(default_factory=list)
    workers: list[Worker] = field(default_factory=list)
