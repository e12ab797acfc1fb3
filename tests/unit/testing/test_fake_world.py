"""The fake world keeps the promises of Triton and model-sync together."""

from collections.abc import Callable

import pytest

from maserve.backends import LoadState, find_failed, is_loaded
from maserve.base.errors import Unavailable
from maserve.base.keys import ClusterId, Key, ModelName, ReplicaName
from maserve.base.signals import Signal
from maserve.modelconfig import Entry, Phase
from maserve.testing.clock import FakeClock
from maserve.testing.faults import Faults
from maserve.testing.world import FakeWorld

SERVER, C1 = Key("ns", "is"), ClusterId("c1")
M1, M2 = ModelName("m1"), ModelName("m2")
FIRST = ReplicaName("triton-is-c1-0")


class Bench:
    """A world whose entries a test sets as it likes."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.entries: tuple[Entry, ...] | None = ()
        self.world = FakeWorld(
            clock=self.clock, changed=Signal(), read_entries=lambda _server, _cluster: self.entries
        )

    def pass_time(self, seconds: float) -> None:
        """Look at the world, let time pass, look again."""
        self.world.settle()
        self.clock.advance(seconds)
        self.world.settle()

    def ready(self) -> int:
        return sum(row.ready for row in self.world.statuses(SERVER, C1))

    def ready_after(self, seconds: float) -> int:
        self.pass_time(seconds)
        return self.ready()

    def states(self, model: ModelName = M1) -> list[LoadState]:
        return [row.state for row in self.world.report(SERVER, C1, model).rows]


def entry(model: ModelName, phase: Phase = Phase.SERVING, replica: str = "") -> Entry:
    return Entry(
        name=model,
        storage_path="",
        deployment_name="d",
        phase=phase,
        canary_pod=ReplicaName(replica),
    )


@pytest.fixture
def bench() -> Bench:
    """Have two replicas that run and hold nothing."""
    bench = Bench()
    bench.world.scale(SERVER, C1, 2, "small")
    bench.pass_time(bench.world.start_s)
    return bench


def test_a_replica_admits_traffic_once_it_has_started() -> None:
    bench = Bench()
    bench.world.scale(SERVER, C1, 2, "small")
    before = bench.ready()
    bench.pass_time(bench.world.start_s)

    assert (before, bench.ready()) == (0, 2)


def test_a_list_that_was_never_there_is_empty() -> None:
    bench = Bench()
    bench.entries = None
    bench.world.scale(SERVER, C1, 1, "small")
    bench.pass_time(bench.world.start_s)

    assert bench.ready() == 1


def test_a_model_loads_in_its_time(bench: Bench) -> None:
    bench.entries = (entry(M1),)
    bench.pass_time(bench.world.load_s / 2)
    halfway = bench.states()
    bench.pass_time(bench.world.load_s / 2)

    assert (halfway, bench.states()) == ([LoadState.LOADING] * 2, [LoadState.READY] * 2)


def test_a_canary_is_loaded_on_its_replica_only(bench: Bench) -> None:
    bench.entries = (entry(M1, Phase.CANARY, FIRST),)
    bench.pass_time(bench.world.load_s)

    assert bench.states() == [LoadState.READY, LoadState.LOADING]


def test_a_serving_model_is_required_only_once_it_is_loaded(bench: Bench) -> None:
    bench.entries = (entry(M1),)
    bench.pass_time(0)
    while_loading = bench.ready()
    bench.pass_time(bench.world.load_s)

    assert (while_loading, bench.ready()) == (2, 2)


def test_a_restarted_replica_is_unready_until_it_has_its_models_again(bench: Bench) -> None:
    bench.entries = (entry(M1),)
    bench.pass_time(bench.world.load_s)
    bench.world.kill(SERVER, C1, 0)
    bench.pass_time(bench.world.start_s)
    restarted = bench.ready()
    bench.pass_time(bench.world.load_s)

    assert (restarted, bench.ready()) == (1, 2)
    assert [row.restarts for row in bench.world.statuses(SERVER, C1)] == [1, 0]


def test_a_broken_model_fails_with_its_reason(bench: Bench) -> None:
    bench.world.broken["m1"] = "bad weights"
    bench.entries = (entry(M1),)
    bench.pass_time(bench.world.load_s)

    failed = find_failed(bench.world.report(SERVER, C1, M1))
    assert failed is not None
    assert (failed.replica, failed.reason) == (FIRST, "bad weights")


def test_a_slow_model_takes_its_own_time(bench: Bench) -> None:
    bench.world.slow["m1"] = 30
    bench.entries = (entry(M1), entry(M2))
    bench.pass_time(bench.world.load_s)

    assert is_loaded(bench.world.report(SERVER, C1, M2))
    assert not is_loaded(bench.world.report(SERVER, C1, M1))


def test_a_model_nobody_wants_is_unloaded_after_the_grace(bench: Bench) -> None:
    bench.entries = (entry(M1),)
    bench.pass_time(bench.world.load_s)
    bench.entries = ()
    bench.pass_time(bench.world.grace_s / 2)
    still = bench.states()
    bench.pass_time(bench.world.grace_s / 2)

    assert still == [LoadState.READY] * 2
    assert bench.states() == [LoadState.LOADING] * 2


def test_a_model_wanted_again_within_the_grace_stays(bench: Bench) -> None:
    bench.entries = (entry(M1),)
    bench.pass_time(bench.world.load_s)
    bench.entries = ()
    bench.pass_time(bench.world.grace_s / 2)
    bench.entries = (entry(M1),)
    bench.pass_time(bench.world.grace_s * 2)

    assert bench.states() == [LoadState.READY] * 2


def test_a_list_that_cannot_be_read_unloads_nothing(bench: Bench) -> None:
    bench.entries = (entry(M1),)
    bench.pass_time(bench.world.load_s)
    bench.entries = None
    bench.pass_time(100)

    assert bench.states() == [LoadState.READY] * 2


def test_scaling_down_drains_before_a_replica_goes(bench: Bench) -> None:
    bench.world.scale(SERVER, C1, 1, "small")
    draining = [row.state for row in bench.world.statuses(SERVER, C1)]
    bench.pass_time(bench.world.drain_s)

    assert draining == ["RUNNING", "DRAINING"]
    assert [row.name for row in bench.world.statuses(SERVER, C1)] == [FIRST]


def test_a_draining_replica_is_in_no_report(bench: Bench) -> None:
    bench.world.scale(SERVER, C1, 1, "small")

    assert len(bench.states()) == 1


def test_a_new_template_never_leaves_fewer_ready_than_wanted(bench: Bench) -> None:
    bench.world.scale(SERVER, C1, 2, "big")
    seen = [bench.ready_after(0.1) for _ in range(60)]

    assert min(seen) == 2
    assert {replica.template for replica in bench.world.groups[SERVER, C1]} == {"big"}


def test_a_removed_server_drains_and_is_gone(bench: Bench) -> None:
    at_once = bench.world.remove(SERVER, C1)
    bench.pass_time(bench.world.drain_s)
    bench.pass_time(bench.world.drain_s)

    assert (at_once, bench.world.remove(SERVER, C1)) == (False, True)
    assert bench.world.groups == {}


def test_settling_names_the_servers_that_changed(bench: Bench) -> None:
    bench.entries = (entry(M1),)

    assert bench.world.settle() == [SERVER]
    assert bench.world.settle() == []


def test_a_server_nobody_made_has_no_replica() -> None:
    report = Bench().world.report(SERVER, C1, M1)

    assert (report.wanted, report.rows) == (0, ())


def write(port: Faults) -> None:
    port.write("make", "it")


def read(port: Faults) -> None:
    port.read("look")


@pytest.mark.parametrize("call", [write, read])
def test_a_fake_port_fails_as_often_as_it_was_told(call: Callable[[Faults], None]) -> None:
    port = Faults()
    port.fail_next(Unavailable("away"), times=2)

    with pytest.raises(Unavailable):
        call(port)
    with pytest.raises(Unavailable):
        call(port)
    call(port)


def test_only_writes_that_succeed_are_noted() -> None:
    port = Faults()
    port.fail_writes = Unavailable("away")
    with pytest.raises(Unavailable):
        write(port)
    port.fail_writes = None
    write(port)
    read(port)

    assert port.calls == [("make", "it")]


def test_failing_reads_leave_writes_alone() -> None:
    port = Faults()
    port.fail_reads = Unavailable("away")
    write(port)

    with pytest.raises(Unavailable):
        read(port)
