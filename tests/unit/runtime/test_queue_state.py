"""The queue's rules, as a state machine against a naive model and one by one."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from maserve.runtime.queue_state import QueueState

KEYS = st.sampled_from(["a", "b", "c", "d"])


class QueueMachine(RuleBasedStateMachine):
    """`owed`: keys added since they were last handed out; `due`: the earliest later times."""

    def __init__(self) -> None:
        super().__init__()
        self.queue: QueueState[str] = QueueState()
        self.now = 0.0
        self.owed: set[str] = set()
        self.working: set[str] = set()
        self.due: dict[str, float] = {}

    @rule(key=KEYS)
    def add(self, key: str) -> None:
        self.queue.add(key, self.now)
        self.owed.add(key)

    @rule(key=KEYS, delay=st.floats(0.001, 10))
    def add_later(self, key: str, delay: float) -> None:
        self.queue.add_at(key, self.now + delay)
        self.due[key] = min(self.due.get(key, self.now + delay), self.now + delay)

    @rule(seconds=st.floats(0, 5))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        self.queue.promote(self.now)
        ripe = {key for key, due in self.due.items() if due <= self.now}
        self.owed |= ripe
        self.due = {key: due for key, due in self.due.items() if key not in ripe}

    @rule()
    def take(self) -> None:
        key = self.queue.take(self.now)
        free = self.owed - self.working
        assert (key is None) == (not free)
        if key is not None:
            assert key in free
            self.owed.discard(key)
            self.working.add(key)

    @precondition(lambda self: self.working)
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.working)))
        self.queue.done(key, self.now)
        self.working.discard(key)

    @invariant()
    def counts_agree(self) -> None:
        assert self.queue.depth == len(self.owed - self.working)
        assert self.queue.working == len(self.working)
        assert self.queue.delayed == len(self.due)
        assert self.queue.next_due_s() == min(self.due.values(), default=None)

    def teardown(self) -> None:
        for key in self.working:
            self.queue.done(key, self.now)
        self.queue.promote(self.now + 100)
        left = set(iter(lambda: self.queue.take(self.now + 100), None))
        assert left == self.owed | set(self.due)


TestQueueMachine = QueueMachine.TestCase


def test_ready_keys_come_out_in_the_order_they_came() -> None:
    queue: QueueState[str] = QueueState()
    queue.add("b", 0)
    queue.add("a", 0)
    queue.add("b", 0)
    assert [queue.take(0), queue.take(0), queue.take(0)] == ["b", "a", None]


def test_a_later_time_does_not_replace_an_earlier_one() -> None:
    queue: QueueState[str] = QueueState()
    assert queue.add_at("a", 5)
    assert not queue.add_at("a", 9)
    assert queue.add_at("a", 2)
    assert not queue.add_at("b", 3)
    assert queue.next_due_s() == 2


def test_closing_keeps_what_is_ready_and_drops_the_rest() -> None:
    queue: QueueState[str] = QueueState()
    queue.add("ready", 0)
    queue.add_at("later", 1)
    queue.add("working", 0)
    queue.take(0)
    queue.add("ready", 0)
    queue.close()
    assert not queue.add("new", 0)
    assert not queue.add_at("new", 1)
    assert not queue.done("ready", 0)
    assert queue.take(0) == "working"
    assert queue.take(0) is None
    assert queue.next_due_s() is None


def test_counters_measure_waiting_and_working() -> None:
    queue: QueueState[str] = QueueState()
    queue.add("a", 1)
    queue.take(3)
    queue.done("a", 10)
    assert (queue.stats.adds, queue.stats.handed_out) == (1, 1)
    assert (queue.stats.waited_s, queue.stats.worked_s) == (2, 7)
