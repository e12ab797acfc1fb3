"""What all tests share."""

import asyncio


def pytest_sessionstart() -> None:
    # Asked for "the" event loop before there is one, asyncio makes a loop that nobody closes, and
    # pytest-asyncio asks. Once a loop (or None) was set, it does not.
    asyncio.set_event_loop(None)
