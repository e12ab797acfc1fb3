"""The kernel's bound on watchers of one user."""

from maserve.host import can_watch, watch_limit


def test_watchers_are_counted_by_having_them() -> None:
    limit = int(watch_limit().rpartition(" = ")[2])
    assert not can_watch(limit + 1)
    assert can_watch(1)
