"""What all tests share."""

import asyncio
import os
import signal

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


def pytest_sessionstart() -> None:
    # Asked for "the" event loop before there is one, asyncio makes a loop that nobody closes, and
    # pytest-asyncio asks. Once a loop (or None) was set, it does not.
    asyncio.set_event_loop(None)
    # A job that is cancelled gets SIGTERM: the programs that tests run end as they do on Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
