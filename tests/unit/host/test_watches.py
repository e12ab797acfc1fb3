"""The kernel's bound on watchers of one user."""

import subprocess
import sys

from maserve.host import can_watch, watch_limit

WITH_FEW_DESCRIPTORS = """
import resource
from maserve.host import can_watch
resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))
print(can_watch(64), can_watch(1))
"""


def test_watchers_are_counted_by_having_them() -> None:
    """Short of descriptors, not of watchers: those are shared with all else on this machine."""
    done = subprocess.run(
        [sys.executable, "-c", WITH_FEW_DESCRIPTORS], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "True"]


def test_none_are_always_to_be_had() -> None:
    assert can_watch(0)


def test_limit_is_told_with_its_name() -> None:
    name, _, value = watch_limit().partition(" = ")
    assert (name, value.isdecimal()) == ("fs.inotify.max_user_instances", True)
