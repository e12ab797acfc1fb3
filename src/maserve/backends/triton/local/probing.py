"""The three probes of a running engine, on one shared reading of its index (behaviour 4.1)."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from maserve.backends.triton.local.parts import LocalTritonParts, ReplicaPaths
from maserve.backends.triton.local.poller import IndexPoller, Snapshot
from maserve.backends.triton.local.readiness import Failures, Readiness, judge_models
from maserve.backends.triton.local.syncstatus import SyncStatus, parse_sync_status
from maserve.backends.triton.settings import ReadinessProbe
from maserve.base.errors import Unavailable
from maserve.host import HttpClient, find_bytes, signature_of


class _Failed(Exception):
    """A probe has failed for good."""


class Prober:
    """Probes one life of an engine at `url`.

    `on_verdict` is told readiness and reason whenever they or the index changed. `was_ready` is
    what an earlier control plane saw: an adopted replica stays ready until probes say otherwise.
    """

    def __init__(
        self,
        url: str,
        parts: LocalTritonParts,
        *,
        http: HttpClient,
        paths: ReplicaPaths,
        model_config: Path,
        was_ready: bool,
        on_verdict: Callable[[bool, str], Awaitable[None]],
    ) -> None:
        self._url = url
        self._parts = parts
        self._http = http
        self._settings = parts.settings
        self._timing = parts.settings.readiness_timing()
        self._paths = paths
        self._model_config = model_config
        self._on_verdict = on_verdict
        self._ready = was_ready
        self._failures = Failures()
        self._told: object = None
        self.poller = IndexPoller(
            url,
            http=http,
            clock=parts.clock,
            settings=parts.settings.embedded,
            timeout_s=self._timing.timeout_s,
            read_sync=self._sync_status,
            on_snapshot=self._judge,
        )

    async def wait_started(self) -> str:
        """Return once the engine is live, with an empty text, or with the reason why it is not.

        Asks faster than the probe's period. The budget is the probe's; after the first period it is
        told what is waited for.
        """
        probe, clock = self._settings.startup, self._parts.clock
        began_s, budget_s, told = clock.monotonic(), probe.period_s * probe.failure_threshold, ""
        while problem := await self._ask("/v2/health/live", probe.timeout_s):
            waited_s = clock.monotonic() - began_s
            if waited_s >= budget_s:
                return f"not live {budget_s:g} s after its start: {problem}"
            if waited_s >= probe.period_s and problem != told:
                told = problem
                await self._on_verdict(False, f"not live yet: {problem}")
            await clock.sleep(self._settings.embedded.fast_period_s)
        return ""

    async def run(self) -> str:
        """Probe until the liveness probe has failed; return why."""
        reasons: list[str] = []
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self.poller.run())
                group.create_task(self._watch_liveness(reasons))
        except* _Failed:
            pass
        return reasons[0]

    async def _watch_liveness(self, reasons: list[str]) -> None:
        probe, clock = self._settings.liveness, self._parts.clock
        failures, took_s = Failures(), 0.0
        while not failures.is_final(probe, clock.monotonic()):
            await clock.sleep(max(0.0, probe.period_s - took_s))
            asked_s = clock.monotonic()
            problem = await self._ask("/v2/health/live", probe.timeout_s)
            took_s = clock.monotonic() - asked_s
            failures = failures.another(problem, asked_s) if problem else Failures()
        reasons.append(f"liveness probe failed {failures.count} times: {failures.reason}")
        raise _Failed

    async def _judge(self, snapshot: Snapshot) -> bool:
        """Turn one reading into a verdict, tell it if it is new, and return whether ready."""
        verdict = await self._verdict(snapshot)
        self._ready = verdict.ready
        news = (verdict, snapshot.content())
        if news != self._told:
            self._told = news
            await self._on_verdict(verdict.ready, verdict.reason)
        return verdict.ready

    async def _verdict(self, snapshot: Snapshot) -> Readiness:
        problem = await self._find_problem(snapshot)
        return self._tolerate(problem) if problem else self._succeed()

    async def _find_problem(self, snapshot: Snapshot) -> str:
        """Return why the readiness probe fails, an empty text when it does not."""
        match self._settings.readiness_probe:
            case ReadinessProbe.NONE:
                return ""
            case ReadinessProbe.SERVER:
                return await self._ask("/v2/health/ready", self._timing.timeout_s)
            case ReadinessProbe.MODEL_AWARE:
                return self._find_missing(snapshot)

    def _find_missing(self, snapshot: Snapshot) -> str:
        if snapshot.error:
            return f"triton unreachable: {snapshot.error}"
        return judge_models(self._required(), snapshot.rows).reason

    def _succeed(self) -> Readiness:
        self._failures = Failures()
        return Readiness(ready=True)

    def _tolerate(self, problem: str) -> Readiness:
        """Count a failure of a process that lives; it stays ready until there were too many.

        A model that is not loaded counts like a Triton that does not answer: both fail the guide's
        probe, and `failureThreshold` is about the probe.
        """
        now_s = self._parts.clock.monotonic()
        self._failures = self._failures.another(problem, now_s)
        if self._ready and not self._failures.is_final(self._timing, now_s):
            return Readiness(ready=True)
        return Readiness(ready=False, reason=problem)

    def _required(self) -> bytes | None:
        try:
            return find_bytes(self._paths.readiness)
        except Unavailable:
            return b""

    def _sync_status(self) -> SyncStatus | None:
        try:
            said = find_bytes(self._paths.sync_status)
            return parse_sync_status(said, signature_of(self._model_config))
        except Unavailable:
            return None

    async def _ask(self, path: str, timeout_s: float) -> str:
        """Return an empty text for 200, else the problem."""
        try:
            answer = await self._http.request("GET", self._url + path, timeout_s=timeout_s)
        except Unavailable as error:
            return str(error)
        return "" if answer.status == 200 else f"GET {path} answered {answer.status}"
