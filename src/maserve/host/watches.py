"""How many more folders may be watched: the kernel bounds the watchers of one user."""

import ctypes
import os
from pathlib import Path

_LIMIT = Path("/proc/sys/fs/inotify/max_user_instances")


def can_watch(count: int) -> bool:
    """Tell whether this user may have `count` more inotify instances now, by having them."""
    libc = ctypes.CDLL(None)
    found: list[int] = []
    try:
        while len(found) < count:
            descriptor = libc.inotify_init1(os.O_CLOEXEC)
            if descriptor < 0:
                return False
            found.append(descriptor)
    finally:
        for descriptor in found:
            os.close(descriptor)
    return True


def watch_limit() -> str:
    """Return the setting that bounds them, with its value, for a person."""
    try:
        return f"fs.inotify.max_user_instances = {_LIMIT.read_text().strip()}"
    except OSError:
        return "fs.inotify.max_user_instances"
