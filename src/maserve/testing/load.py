"""Open-loop load: requests at a constant rate, whether or not earlier ones have been answered.

A closed loop hides outages, because it stops asking while nobody answers. Here every request has
its time in a schedule that answers cannot shift. Half of the requests open a connection of their
own, the other half reuse kept-alive ones: the two meet a restarted listener in different ways.

What this side got wrong (late, out of ports or file descriptors, too much in flight) is reported
apart and never counted against the server. Run it as a process of its own where it would share a
loop with what it measures:

    python -m maserve.testing.load URL --rate 150 --seconds 20 --body request.json
"""

import argparse
import asyncio
import errno
import json
import math
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import aiohttp

from maserve.base.clock import Clock, SystemClock
from maserve.testing.load_results import Failure, LoadSummary, Reply, Sample, summarize

_OUR_FAULT = frozenset({errno.EADDRNOTAVAIL, errno.EMFILE, errno.ENFILE, errno.ENOBUFS})

__all__ = [
    "OpenLoopLoad",
    "LoadSettings",
    "LoadSummary",
    "Failure",
    "Reply",
    "Sample",
    "Sender",
    "HttpSender",
    "Judge",
    "summarize",
    "main",
]

Judge = Callable[[Mapping[str, Any]], str]
"""Says what is wrong with an answer's JSON; empty when nothing is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSettings:
    """How much and for how long. `max_requests` 0 leaves the time as the only bound.

    A request is late when it starts more than `late_after_s` after its time; one that would exceed
    `max_in_flight` is not sent at all.
    """

    rate_per_s: float
    duration_s: float
    max_requests: int = 0
    late_after_s: float = 0.25
    max_in_flight: int = 2000


class Sender(Protocol):
    """Sends one request and never raises for what the other side did."""

    async def send(self, *, kept_alive: bool) -> Reply:
        """Send over a kept-alive connection or over a new one."""
        ...


class OpenLoopLoad:
    """Sends through `sender` on schedule; `on_sample` hears of each request as it ends."""

    def __init__(
        self,
        settings: LoadSettings,
        sender: Sender,
        *,
        clock: Clock,
        judge: Judge = lambda _: "",
        on_sample: Callable[[Sample], None] = lambda _: None,
    ) -> None:
        self._settings = settings
        self._sender = sender
        self._clock = clock
        self._judge = judge
        self._on_sample = on_sample
        self._in_flight = 0
        self._stopping = False
        self.samples: list[Sample] = []

    def stop(self) -> None:
        """Send nothing more; `run` returns once the requests in flight are answered."""
        self._stopping = True

    async def run(self) -> LoadSummary:
        """Send until the time is over, the count is reached or `stop` is called."""
        start = self._clock.monotonic()
        async with asyncio.TaskGroup() as group:
            for number in range(self._count()):
                scheduled_s = number / self._settings.rate_per_s
                await self._clock.sleep(start + scheduled_s - self._clock.monotonic())
                if self._stopping:
                    break
                group.create_task(self._one(number, start, scheduled_s))
        return summarize(
            self.samples,
            late_after_s=self._settings.late_after_s,
            duration_s=self._clock.monotonic() - start,
        )

    def _count(self) -> int:
        in_time = math.ceil(self._settings.duration_s * self._settings.rate_per_s - 1e-9)
        return min(in_time, self._settings.max_requests or in_time)

    async def _one(self, number: int, start: float, scheduled_s: float) -> None:
        began = self._clock.monotonic()
        kept_alive = number % 2 == 0
        reply = await self._send(kept_alive=kept_alive)
        answered = reply.status == 200 and not reply.error
        sample = Sample(
            scheduled_s=scheduled_s,
            lateness_s=began - start - scheduled_s,
            latency_s=self._clock.monotonic() - began,
            kept_alive=kept_alive,
            reply=reply,
            wrong=self._judge(reply.body) if answered else "",
        )
        self.samples.append(sample)
        self._on_sample(sample)

    async def _send(self, *, kept_alive: bool) -> Reply:
        if self._in_flight >= self._settings.max_in_flight:
            return Reply(attempted=False, error="too many requests in flight")
        self._in_flight += 1
        try:
            return await self._sender.send(kept_alive=kept_alive)
        finally:
            self._in_flight -= 1


class HttpSender:
    """Posts one body to one URL; use as `async with`."""

    def __init__(self, url: str, body: bytes, *, timeout_s: float = 10.0) -> None:
        self._url = url
        self._body = body
        self._timeout = aiohttp.ClientTimeout(total=timeout_s)
        self._kept: aiohttp.ClientSession | None = None
        self._fresh: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._kept = _session(force_close=False)
        self._fresh = _session(force_close=True)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for session in (self._kept, self._fresh):
            if session is not None:
                await session.close()

    async def send(self, *, kept_alive: bool) -> Reply:
        """Send it once: nothing is retried here, whatever the connection did."""
        session = self._kept if kept_alive else self._fresh
        if session is None:
            raise RuntimeError("HttpSender is used outside its `async with`")
        try:
            async with session.post(
                self._url,
                data=self._body,
                headers={"Content-Type": "application/json"},
                timeout=self._timeout,
                allow_redirects=False,
            ) as response:
                return _read(response.status, await response.read())
        except TimeoutError:
            return Reply(error=f"no answer after {self._timeout.total:g} s")
        except (aiohttp.ClientError, OSError) as error:
            return _failed(error)


def _session(*, force_close: bool) -> aiohttp.ClientSession:
    # No limit of our own: waiting for a connection would close the loop.
    connector = aiohttp.TCPConnector(limit=0, force_close=force_close)
    return aiohttp.ClientSession(connector=connector, trust_env=False)


def _read(status: int, raw: bytes) -> Reply:
    try:
        body = json.loads(raw)
    except ValueError:
        body = None
    if status != 200:
        said = body.get("error", "") if isinstance(body, dict) else raw.decode(errors="replace")
        return Reply(status=status, error=f"HTTP {status} {str(said)[:200]}".rstrip())
    if not isinstance(body, dict):
        return Reply(status=status, error="answer is not a JSON object")
    return Reply(status=status, body=body)


def _failed(error: aiohttp.ClientError | OSError) -> Reply:
    number = error.errno if isinstance(error, OSError) else None
    text = f"{type(error).__name__}: {error}".removesuffix(": ")
    return Reply(error=text[:300], attempted=number not in _OUR_FAULT)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one load and print its summary as JSON; returns 1 when a request failed."""
    parser = argparse.ArgumentParser(prog="python -m maserve.testing.load", description=__doc__)
    parser.add_argument("url")
    parser.add_argument("--body", type=Path, required=True, help="file with the JSON to post")
    parser.add_argument("--rate", type=float, default=100.0, help="requests per second")
    parser.add_argument("--seconds", type=float, default=10.0, help="how long to send")
    parser.add_argument("--count", type=int, default=0, help="stop after so many; 0: no limit")
    parser.add_argument("--timeout", type=float, default=10.0, help="seconds to wait for an answer")
    given = parser.parse_args(arguments)
    settings = LoadSettings(
        rate_per_s=given.rate, duration_s=given.seconds, max_requests=given.count
    )
    sender = HttpSender(given.url, given.body.read_bytes(), timeout_s=given.timeout)
    summary = asyncio.run(_run(settings, sender))
    sys.stdout.write(summary.to_json() + "\n")
    return 1 if summary.failed else 0


async def _run(settings: LoadSettings, sender: HttpSender) -> LoadSummary:
    """Send until the end or SIGTERM; says `started` on stderr when the first request has ended."""
    load = OpenLoopLoad(settings, sender, clock=SystemClock(), on_sample=_Once())
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, load.stop)
    async with sender:
        return await load.run()


class _Once:
    """Announces the first sample only."""

    def __init__(self) -> None:
        self._told = False

    def __call__(self, sample: Sample) -> None:
        if not self._told:
            self._told = True
            sys.stderr.write(f"started {sample.failure}".rstrip() + "\n")
            sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
