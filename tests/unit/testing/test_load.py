"""The load keeps its schedule, and blames the server only for what the server did."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from maserve.testing.clock import LoopClock
from maserve.testing.load import LoadSettings, OpenLoopLoad
from maserve.testing.load_results import Failure, LoadSummary, Reply, Sample, summarize

pytestmark = pytest.mark.looptime

GOOD = Reply(status=200, body={"model_name": "m1"})


@dataclass
class FakeSender:
    """Answers each request after `delay_s` with what `answer` says for its number."""

    answer: Callable[[int], Reply] = lambda _: GOOD
    delay_s: float = 0.0
    times: list[float] = field(default_factory=list)
    kept_alive: list[bool] = field(default_factory=list)

    async def send(self, *, kept_alive: bool) -> Reply:
        number = len(self.times)
        self.times.append(asyncio.get_running_loop().time())
        self.kept_alive.append(kept_alive)
        await asyncio.sleep(self.delay_s)
        return self.answer(number)


def a_load(sender: FakeSender, settings: LoadSettings, **more: Any) -> OpenLoopLoad:
    return OpenLoopLoad(settings, sender, clock=LoopClock(), **more)


async def test_slow_answers_do_not_shift_the_schedule() -> None:
    sender = FakeSender(delay_s=7.0)
    start = asyncio.get_running_loop().time()
    summary = await a_load(sender, LoadSettings(rate_per_s=10, duration_s=1)).run()
    assert [round(at - start, 3) for at in sender.times] == [n / 10 for n in range(10)]
    assert (summary.sent, summary.ok, summary.late) == (10, 10, 0)
    assert summary.latency_ms["p50"] == pytest.approx(7000)


async def test_half_of_the_requests_open_a_connection() -> None:
    sender = FakeSender()
    summary = await a_load(sender, LoadSettings(rate_per_s=100, duration_s=1)).run()
    assert (sender.kept_alive.count(True), summary.new_connections) == (50, 50)


async def test_count_ends_the_load_before_its_time() -> None:
    settings = LoadSettings(rate_per_s=100, duration_s=60, max_requests=7)
    assert (await a_load(FakeSender(), settings).run()).sent == 7


async def test_stopping_sends_no_more_and_waits_for_answers() -> None:
    sender = FakeSender(delay_s=3.0)
    load = a_load(sender, LoadSettings(rate_per_s=10, duration_s=60))
    asyncio.get_running_loop().call_later(1.05, load.stop)
    summary = await load.run()
    assert (summary.sent, summary.ok) == (11, 11)
    assert summary.duration_s == pytest.approx(4.0)


async def test_answers_are_counted_by_model() -> None:
    sender = FakeSender(
        answer=lambda n: Reply(status=200, body={"model_name": "m1" if n < 4 else "m2"})
    )
    summary = await a_load(sender, LoadSettings(rate_per_s=10, duration_s=1)).run()
    assert summary.answered_by == {"m1": 4, "m2": 6}


async def test_failures_carry_their_text_and_first_time() -> None:
    def answer(number: int) -> Reply:
        return Reply(error="refused") if 3 <= number < 5 else GOOD

    summary = await a_load(
        FakeSender(answer=answer), LoadSettings(rate_per_s=10, duration_s=1)
    ).run()
    assert (summary.ok, summary.failed) == (8, 2)
    assert summary.failures == (Failure(text="refused", count=2, first_s=0.3),)


async def test_wrong_answers_are_told_from_failures() -> None:
    def judge(body: Mapping[str, Any]) -> str:
        return f"{body['model_name']} may not answer"

    load = a_load(FakeSender(), LoadSettings(rate_per_s=10, duration_s=0.3), judge=judge)
    summary = await load.run()
    assert (summary.ok, summary.wrong, summary.failed) == (0, 3, 0)
    assert summary.failures[0].text == "m1 may not answer"


async def test_too_much_in_flight_is_our_own_fault() -> None:
    settings = LoadSettings(rate_per_s=10, duration_s=1, max_in_flight=4)
    summary = await a_load(FakeSender(delay_s=100), settings).run()
    assert (summary.sent, summary.ok, summary.failed, summary.not_sent) == (4, 4, 0, 6)
    assert summary.client_problems == {"too many requests in flight": 6}


def a_sample(**changes: Any) -> Sample:
    fields = {"scheduled_s": 0.0, "lateness_s": 0.0, "latency_s": 0.01, "kept_alive": True}
    return Sample(**{**fields, "reply": GOOD, **changes})


def test_late_requests_are_reported_and_still_count() -> None:
    samples = [a_sample(), a_sample(lateness_s=0.6)]
    summary = summarize(samples, late_after_s=0.25, duration_s=1)
    assert (summary.sent, summary.ok, summary.failed, summary.late) == (2, 2, 0, 1)


def test_percentiles_are_nearest_ranks() -> None:
    samples = [a_sample(latency_s=n / 1000) for n in range(1, 101)]
    latency_ms = summarize(samples, late_after_s=1, duration_s=1).latency_ms
    assert latency_ms == {"p50": 50.0, "p95": 95.0, "p99": 99.0, "max": 100.0}


def test_a_load_without_answers_has_no_percentiles() -> None:
    summary = summarize([a_sample(reply=Reply(error="x"))], late_after_s=1, duration_s=1)
    assert (summary.failed, summary.latency_ms) == (1, {})


def test_summary_survives_the_way_through_json() -> None:
    samples = [a_sample(), a_sample(reply=Reply(error="x", attempted=True))]
    summary = summarize(samples, late_after_s=1, duration_s=1)
    assert LoadSummary.from_json(summary.to_json()) == summary
