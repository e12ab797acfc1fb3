"""The work queue's rules, without a loop: which key may be worked on when."""

from collections import deque
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Generic, TypeVar

K = TypeVar("K")


@dataclass(slots=True)
class QueueStats:
    """Counters since the start; they only grow."""

    adds: int = 0
    """Keys that became ready; adds of a key that already waited are not counted."""
    retries: int = 0
    """Rate-limited adds."""
    handed_out: int = 0
    waited_s: float = 0.0
    """Total time between ready and handed out."""
    worked_s: float = 0.0
    """Total time between handed out and done."""


class QueueState(Generic[K]):
    """Keys that are ready, being worked on, or due later.

    **Invariants:** a key is ready at most once; a key being worked on is never ready; a key added
    while it is worked on becomes ready when that work is done; of several later times for one key
    the earliest counts; no key is lost. Times are seconds of one monotonic counter, which the
    caller passes in.
    """

    def __init__(self) -> None:
        self.stats = QueueStats()
        self._ready: deque[K] = deque()
        self._ready_since: dict[K, float] = {}
        self._working_since: dict[K, float] = {}
        self._again: dict[K, None] = {}
        self._due: dict[K, float] = {}
        self._heap: list[tuple[float, int, K]] = []
        self._sequence = 0
        self._closed = False

    @property
    def depth(self) -> int:
        """How many keys are ready."""
        return len(self._ready)

    @property
    def working(self) -> int:
        """How many keys are being worked on."""
        return len(self._working_since)

    @property
    def delayed(self) -> int:
        """How many keys are due later."""
        return len(self._due)

    @property
    def is_closed(self) -> bool:
        return self._closed

    def add(self, key: K, now_s: float) -> bool:
        """Make `key` ready, now or once its work is done; True if it became ready now."""
        if self._closed or key in self._ready_since:
            return False
        if key in self._working_since:
            self._again[key] = None
            return False
        self._ready.append(key)
        self._ready_since[key] = now_s
        self.stats.adds += 1
        return True

    def add_at(self, key: K, due_s: float) -> bool:
        """Make `key` ready at `due_s`; True if that is now the earliest time of all keys."""
        if self._closed or due_s >= self._due.get(key, float("inf")):
            return False
        self._due[key] = due_s
        self._sequence += 1
        heappush(self._heap, (due_s, self._sequence, key))
        return self._heap[0][2] == key

    def promote(self, now_s: float) -> int:
        """Make ready what is due; return how many keys became ready."""
        promoted = 0
        while (due_s := self.next_due_s()) is not None and due_s <= now_s:
            key = heappop(self._heap)[2]
            del self._due[key]
            promoted += self.add(key, now_s)
        return promoted

    def next_due_s(self) -> float | None:
        """Return the earliest later time, None when nothing is due later."""
        while self._heap and self._due.get(self._heap[0][2]) != self._heap[0][0]:
            heappop(self._heap)  # an earlier time for this key came after it
        return self._heap[0][0] if self._heap else None

    def take(self, now_s: float) -> K | None:
        """Hand out the key that has been ready for longest, None when there is none."""
        if not self._ready:
            return None
        key = self._ready.popleft()
        self.stats.handed_out += 1
        self.stats.waited_s += now_s - self._ready_since.pop(key)
        self._working_since[key] = now_s
        return key

    def done(self, key: K, now_s: float) -> bool:
        """End the work on `key`; True if it is ready again because it was added meanwhile.

        KeyError if it is not being worked on.
        """
        self.stats.worked_s += now_s - self._working_since.pop(key)
        if key not in self._again:
            return False
        del self._again[key]
        return self.add(key, now_s)

    def close(self) -> None:
        """Refuse further keys and forget those due later; what is ready is still handed out."""
        self._closed = True
        self._due.clear()
        self._heap.clear()
        self._again.clear()
