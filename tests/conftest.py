"""What all tests share."""

import asyncio
import os
import signal
import time
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

# `--hypothesis-profile=deep` is for a long look at one property. No profile has a deadline: how
# fast a machine is, is not what these tests are about.
for name, examples in (("fast", 20), ("ci", 100), ("deep", 2000)):
    settings.register_profile(
        name,
        max_examples=examples,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
        print_blob=True,
    )
settings.load_profile("ci" if os.environ.get("CI") else "fast")

LIMIT_S = 5.0
FREE = ("slow", "real", "hypothesis")
"""Marks of tests without that limit: their length is explained, or chosen by a profile."""


def pytest_sessionstart() -> None:
    # Asked for "the" event loop before there is one, asyncio makes a loop that nobody closes, and
    # pytest-asyncio asks. Once a loop (or None) was set, it does not.
    asyncio.set_event_loop(None)
    # A job that is cancelled gets SIGTERM: the programs that tests run end as they do on Ctrl-C,
    # which a shell takes from what it runs in the background.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """Hold tests to `LIMIT_S` of processor time; on the clock it would depend on who else works."""
    before_s = time.process_time()
    yield
    took_s = time.process_time() - before_s
    if took_s > LIMIT_S and not any(item.get_closest_marker(mark) for mark in FREE):
        pytest.fail(
            f"took {took_s:.1f} s of processor time, {LIMIT_S:.0f} are allowed", pytrace=False
        )
