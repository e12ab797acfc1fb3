"""When a running replica takes no traffic any more: in virtual time, on a told engine."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from maserve.backends.triton import ProbeSettings, ReadinessProbe, TritonSettings
from maserve.backends.triton.local.parts import LocalTritonParts, ReplicaPaths
from maserve.backends.triton.local.probing import Prober
from maserve.base.errors import Unavailable
from maserve.base.tasks import run_until
from maserve.host import Answer, HttpClient
from maserve.testing.clock import LoopClock

pytestmark = pytest.mark.looptime(noop_cycles=0)  # no threads, no sockets to wait for

PROBE = ProbeSettings(period_s=10, timeout_s=1, failure_threshold=3)
SLACK_S = TritonSettings().embedded.slow_period_s
"""A failure is noticed at the next look at the latest."""


class ToldEngine(HttpClient):
    """Has the models that it is told to have; unreachable while `away`."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded = ["m1"]
        self.away = False

    async def request(self, method: str, url: str, **_: Any) -> Answer:
        if self.away:
            raise Unavailable("nobody answers")
        rows = [{"name": name, "version": "1", "state": "READY"} for name in self.loaded]
        return Answer(status=200, body=json.dumps(rows).encode())


class Probed:
    """A replica under its probes, and what they have said, with the time."""

    def __init__(self, home: Path, probe: ReadinessProbe, *, was_ready: bool) -> None:
        self.engine = ToldEngine()
        self.said: list[tuple[float, bool, str]] = []
        self.paths = ReplicaPaths(home=home)
        self.require("m1")
        settings = replace(TritonSettings(), readiness_probe=probe, readiness=PROBE)
        parts = SimpleNamespace(clock=LoopClock(), settings=settings)
        self._prober = Prober(
            "http://127.0.0.1:1",
            cast(LocalTritonParts, parts),
            http=self.engine,
            paths=self.paths,
            model_config=home / "model-list.json",
            was_ready=was_ready,
            on_verdict=self._note,
        )

    def require(self, *names: str) -> None:
        self.paths.readiness.write_text(json.dumps({"required": list(names)}))

    async def live(self, seconds: float) -> None:
        """Probe for so long."""
        done = asyncio.Event()
        asyncio.get_running_loop().call_later(seconds, done.set)
        await run_until(done, self._prober.poller.run())

    @property
    def is_ready(self) -> bool:
        return self.said[-1][1]

    async def _note(self, ready: bool, reason: str) -> None:
        self.said.append((asyncio.get_running_loop().time(), ready, reason))


@pytest.fixture
async def ready(tmp_path: Path) -> Probed:
    return Probed(tmp_path, ReadinessProbe.MODEL_AWARE, was_ready=True)


async def test_lost_model_takes_a_replica_out_after_as_many_failures_as_are_set(
    ready: Probed,
) -> None:
    await ready.live(5)
    ready.engine.loaded = []
    lost_s = asyncio.get_running_loop().time()
    await ready.live(19)
    assert ready.is_ready
    await ready.live(1 + 2 * SLACK_S)

    at_s, is_ready, reason = ready.said[-1]
    assert (is_ready, reason) == (False, "serving models not loaded: m1")
    assert 20 <= at_s - lost_s <= 20 + 2 * SLACK_S


async def test_model_that_comes_back_in_time_is_as_if_it_had_never_gone(ready: Probed) -> None:
    for _ in range(4):
        ready.engine.loaded = []
        await ready.live(15)
        ready.engine.loaded = ["m1"]
        await ready.live(5)

    assert [is_ready for _, is_ready, _ in ready.said] == [True] * len(ready.said)


@pytest.mark.parametrize("content", ["", "{", '{"required": 7}'])
async def test_list_that_cannot_be_read_counts_like_a_model_that_is_not_loaded(
    ready: Probed, content: str
) -> None:
    await ready.live(5)
    ready.paths.readiness.write_text(content)
    await ready.live(19)
    assert ready.is_ready
    await ready.live(1 + 2 * SLACK_S)
    assert not ready.is_ready


async def test_failures_of_both_kinds_count_together(ready: Probed) -> None:
    await ready.live(5)
    ready.engine.away = True
    await ready.live(11)
    ready.engine.away, ready.engine.loaded = False, []
    await ready.live(11)

    assert ready.said[-1][1:] == (False, "serving models not loaded: m1")


async def test_replica_that_was_never_ready_is_not_before_it_has_all_models(
    tmp_path: Path,
) -> None:
    starting = Probed(tmp_path, ReadinessProbe.MODEL_AWARE, was_ready=False)
    starting.engine.loaded = []
    await starting.live(5)
    assert [is_ready for _, is_ready, _ in starting.said] == [False]
    starting.engine.loaded = ["m1"]
    await starting.live(5)
    assert starting.is_ready


async def test_replica_that_is_out_comes_back_with_its_first_success(ready: Probed) -> None:
    ready.engine.loaded = []
    await ready.live(30)
    assert not ready.is_ready
    ready.engine.loaded = ["m1"]
    await ready.live(SLACK_S)
    assert ready.is_ready
