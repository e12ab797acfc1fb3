"""A controller against reconciles that misbehave, in virtual time."""

import asyncio
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
import structlog
from prometheus_client import CollectorRegistry

from maserve.base.backoff import Backoff
from maserve.base.errors import Conflict, Denied, Invalid, Problem, Unavailable, Unsupported
from maserve.base.keys import Key
from maserve.runtime import (
    After,
    Again,
    Controller,
    ControllerSettings,
    Done,
    Metrics,
    Outcome,
    Stop,
    WorkQueue,
)
from maserve.runtime.metrics import PASS_RESULTS
from maserve.testing.clock import LoopClock

pytestmark = pytest.mark.looptime

KEY = Key("ns", "a")
OTHER = Key("ns", "b")


class Script:
    """A reconcile that answers from a list, then `Done`; remembers when it was called for what."""

    def __init__(self, *answers: Outcome | Exception, takes_s: float = 0.0) -> None:
        self._answers = list(answers)
        self._takes_s = takes_s
        self.calls: list[tuple[float, Key]] = []
        self.busy: set[Key] = set()
        self.most_busy = 0

    @property
    def times(self) -> list[float]:
        return [round(time, 3) for time, _ in self.calls]

    async def __call__(self, key: Key) -> Outcome:
        self.calls.append((asyncio.get_running_loop().time(), key))
        assert key not in self.busy
        self.busy.add(key)
        self.most_busy = max(self.most_busy, len(self.busy))
        try:
            await asyncio.sleep(self._takes_s)
        finally:
            self.busy.discard(key)
        answer = self._answers.pop(0) if self._answers else Done()
        if isinstance(answer, Exception):
            raise answer
        return answer


class Bench:
    """One controller with its metrics."""

    def __init__(self, reconcile: Script, settings: ControllerSettings) -> None:
        self.registry = CollectorRegistry()
        clock = LoopClock()
        queue: WorkQueue[Key] = WorkQueue(clock, backoff=Backoff(initial_s=1, limit_s=30))
        self.told: list[tuple[Key, str]] = []
        self.controller = Controller(
            "demo",
            reconcile,
            clock=clock,
            rng=random.Random(1),
            queue=queue,
            metrics=Metrics(self.registry).of_controller("demo", queue),
            settings=settings,
            tell=lambda key, why: self.told.append((key, why)),
        )

    def passes(self, result: str) -> float | None:
        labels = {"controller": "demo", "result": result}
        return self.registry.get_sample_value("maserve_controller_passes_total", labels)

    def queue_value(self, name: str) -> float | None:
        return self.registry.get_sample_value(name, {"controller": "demo"})


@asynccontextmanager
async def running(
    script: Script, settings: ControllerSettings | None = None
) -> AsyncIterator[Bench]:
    bench = Bench(script, settings or ControllerSettings())
    async with asyncio.TaskGroup() as group:
        task = group.create_task(bench.controller.run())
        yield bench
        task.cancel()


@pytest.fixture
def logged() -> Iterator[list[structlog.typing.EventDict]]:
    with structlog.testing.capture_logs() as entries:
        yield entries


def events(entries: list[structlog.typing.EventDict]) -> list[str]:
    return [entry["event"] for entry in entries]


@pytest.mark.parametrize(
    ("answer", "times", "result"),
    [
        (Done(), [0], "done"),
        (Again(), [0, 0], "again"),
        (After(7), [0, 7], "after"),
        (Stop("no such plugin"), [0], "stop"),
        (Conflict("Deployment", KEY), [0, 0], "conflict"),
        (Unavailable("cluster c1"), [0, 1], "retry"),
        (Invalid(Problem("spec", "is bad")), [0, 300], "refused"),
        (Denied("pods"), [0, 300], "refused"),
        (Unsupported("backend"), [0, 300], "refused"),
        (KeyError("bug"), [0, 1], "bug"),
        (TimeoutError("not ours"), [0, 1], "bug"),
    ],
    ids=lambda value: repr(value) if isinstance(value, Exception) else None,
)
async def test_what_a_pass_ends_with_says_when_the_next_one_is(
    answer: Outcome | Exception, times: list[float], result: str
) -> None:
    script = Script(answer)
    async with running(script) as bench:
        bench.controller.enqueue(KEY)
        await asyncio.sleep(1000)
    assert script.times == times
    assert bench.passes(result) == 1


async def test_an_event_ends_a_wait_early() -> None:
    script = Script(After(100))
    async with running(script) as bench:
        bench.controller.enqueue(KEY)
        await asyncio.sleep(3)
        bench.controller.enqueue(KEY)
        await asyncio.sleep(1)
    assert script.times == [0, 3]


async def test_failures_in_a_row_wait_longer_and_a_success_starts_anew() -> None:
    lost = Unavailable("cluster c1")
    script = Script(lost, lost, lost, After(100), lost)
    async with running(script) as bench:
        bench.controller.enqueue(KEY)
        await asyncio.sleep(1000)
    assert script.times == [0, 1, 3, 7, 107, 108]


async def test_lost_races_are_retried_at_once_only_so_often() -> None:
    script = Script(*[Conflict("Deployment", KEY)] * 4)
    async with running(script, ControllerSettings(conflicts=2)) as bench:
        bench.controller.enqueue(KEY)
        await asyncio.sleep(1000)
    assert script.times == [0, 0, 0, 1, 3]


async def test_an_object_that_does_not_settle_is_slowed_down(
    logged: list[structlog.typing.EventDict],
) -> None:
    script = Script(*[Again()] * 5)
    async with running(script, ControllerSettings(restarts=2, slow_s=10)) as bench:
        bench.controller.enqueue(KEY)
        await asyncio.sleep(1000)
    assert script.times == [0, 0, 0, 10, 20, 30]
    assert events(logged) == ["reconcile does not settle"]


async def test_a_pass_over_its_time_is_cancelled_and_retried() -> None:
    script = Script(takes_s=90)
    async with running(script) as bench:
        bench.controller.enqueue(KEY)
        await asyncio.sleep(62)
    assert script.times == [0, 61]
    assert bench.passes("timeout") == 1


async def test_one_key_is_worked_on_once_at_a_time_and_others_beside_it() -> None:
    script = Script(takes_s=10)
    async with running(script, ControllerSettings(workers=2)) as bench:
        bench.controller.enqueue(KEY)
        bench.controller.enqueue(OTHER)
        await asyncio.sleep(5)
        bench.controller.enqueue(KEY)
        await asyncio.sleep(50)
    assert script.calls == [(0, KEY), (0, OTHER), (10, KEY)]
    assert script.most_busy == 2


async def test_the_same_error_is_logged_once_and_again_after_a_success(
    logged: list[structlog.typing.EventDict],
) -> None:
    lost = Unavailable("cluster c1")
    script = Script(lost, lost, lost, After(1), lost)
    async with running(script) as bench:
        bench.controller.enqueue(KEY)
        await asyncio.sleep(1000)
    assert events(logged) == ["reconcile failed", "reconcile failed"]
    assert logged[0]["error"] == "cluster c1"


@pytest.mark.parametrize(
    ("error", "event"),
    [
        (KeyError("bug"), "reconcile raised"),
        (Denied("pods"), "reconcile refused"),
        (Stop("no plugin"), "reconcile stopped"),
    ],
)
async def test_what_needs_a_person_is_logged_once(
    error: Outcome | Exception, event: str, logged: list[structlog.typing.EventDict]
) -> None:
    script = Script(error, error)
    async with running(script) as bench:
        bench.controller.enqueue(KEY)
        await asyncio.sleep(1)
        bench.controller.enqueue(KEY)
        await asyncio.sleep(1)
    assert events(logged) == [event]


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (
            ValueError("odd"),
            "ValueError('odd'): a fault of the control plane or a plugin; tried again",
        ),
        (Denied("pods"), "pods; tried again every 300 s"),
        (Unavailable("cluster c1"), "reconcile failed: cluster c1; tried again"),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_what_ends_a_pass_is_told_once(error: Exception, why: str) -> None:
    async with running(Script(error, error)) as bench:
        bench.controller.enqueue(KEY)
        await asyncio.sleep(1000)
        assert bench.told == [(KEY, why)]


async def test_a_bug_is_logged_with_its_traceback(
    logged: list[structlog.typing.EventDict],
) -> None:
    bug = KeyError("bug")
    async with running(Script(bug)) as bench:
        bench.controller.enqueue(KEY)
        await asyncio.sleep(1)
    assert logged[0]["exc_info"] is bug


async def test_a_pass_binds_what_it_is_about_to_every_log_line() -> None:
    seen: list[dict[str, object]] = []

    class Look(Script):
        async def __call__(self, key: Key) -> Outcome:
            seen.append(dict(structlog.contextvars.get_contextvars()))
            return Done()

    async with running(Look()) as bench:
        bench.controller.enqueue(KEY)
        await asyncio.sleep(1)
    assert seen[0] == {
        "controller": "demo",
        "namespace": "ns",
        "name": "a",
        "reconcile_id": seen[0]["reconcile_id"],
    }
    assert len(str(seen[0]["reconcile_id"])) == 8


async def test_stop_finishes_what_is_ready_and_takes_no_more() -> None:
    script = Script(Again(), takes_s=1)
    bench = Bench(script, ControllerSettings(workers=1))
    async with asyncio.TaskGroup() as group:
        group.create_task(bench.controller.run())
        bench.controller.enqueue(KEY)
        bench.controller.enqueue(OTHER)
        await asyncio.sleep(0.5)
        bench.controller.stop()
    assert script.calls == [(0, KEY), (1, OTHER)]


async def test_every_metric_exists_at_zero() -> None:
    bench = Bench(Script(), ControllerSettings())
    assert {result: bench.passes(result) for result in PASS_RESULTS} == dict.fromkeys(
        PASS_RESULTS, 0
    )
    assert bench.queue_value("maserve_controller_pass_seconds_count") == 0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("maserve_queue_depth", 0),
        ("maserve_queue_delayed", 1),
        ("maserve_queue_working", 0),
        ("maserve_queue_adds_total", 1),
        ("maserve_queue_retries_total", 1),
        ("maserve_queue_wait_seconds_total", 0),
        ("maserve_controller_pass_seconds_count", 1),
    ],
)
async def test_metrics_follow_the_queue(name: str, value: float) -> None:
    async with running(Script(Unavailable("x"))) as bench:
        bench.controller.enqueue(KEY)
        await asyncio.sleep(0.5)
        assert bench.queue_value(name) == value
