"""Loopback ports for supervised programs, remembered on disk.

Ports come from outside the kernel's ephemeral range, so that no outgoing connection takes one
between a restart and the next bind.
"""

import random
import socket
import threading
from collections.abc import Iterable
from ipaddress import ip_address
from pathlib import Path

from maserve.base.errors import Invalid, Problem, Unavailable
from maserve.host.files import find_json, write_json

LOOPBACK = "127.0.0.1"
LOWEST = 10_000
HIGHEST = 65_535
FALLBACK = (20_000, 29_999)
"""Used when the kernel's range leaves nothing: then only the bind test helps."""

_EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")


class PortBook:
    """Who has which ports. Safe to call from several threads; blocks for a small durable write.

    One data folder has one book and one process at a time (see `DataFolder.lock`). A port is tested
    by binding it; somebody outside may still take it before its owner does, who asks `replace`.
    """

    def __init__(self, file: Path, *, rng: random.Random) -> None:
        self._file = file
        self._rng = rng
        self._lock = threading.Lock()
        self._owned: dict[str, tuple[int, ...]] | None = None

    def allocate(self, owner: str, count: int) -> tuple[int, ...]:
        """Return the owner's ports: the remembered ones, else new ones.

        Raises `Unavailable` when no port is free or the book cannot be written.
        """
        with self._lock:
            owned = self._load()
            if len(owned.get(owner, ())) != count:
                self._keep(owner, self._pick(count, avoid=()))
            return self._load()[owner]

    def replace(self, owner: str, count: int) -> tuple[int, ...]:
        """Return new ports instead of the remembered ones: somebody else has one of them."""
        with self._lock:
            before = self._load().get(owner, ())
            self._keep(owner, self._pick(count, avoid=before))
            return self._load()[owner]

    def release(self, owner: str) -> None:
        """Forget the owner's ports; none is success."""
        with self._lock:
            owned = self._load()
            if owner in owned:
                rest = {name: ports for name, ports in owned.items() if name != owner}
                self._write(rest)

    def are_free(self, ports: Iterable[int]) -> bool:
        """Tell whether a program could listen on all of them now."""
        return all(is_free(port) for port in ports)

    def owners(self) -> tuple[str, ...]:
        with self._lock:
            return tuple(sorted(self._load()))

    def _keep(self, owner: str, ports: tuple[int, ...]) -> None:
        self._write({**self._load(), owner: ports})

    def _pick(self, count: int, *, avoid: Iterable[int]) -> tuple[int, ...]:
        taken = {port for ports in self._load().values() for port in ports} | set(avoid)
        candidates = [port for port in _candidates(_ephemeral_range()) if port not in taken]
        start = self._rng.randrange(len(candidates)) if candidates else 0
        found: list[int] = []
        for port in candidates[start:] + candidates[:start]:
            if len(found) == count:
                break
            if is_free(port):
                found.append(port)
        if len(found) < count:
            raise Unavailable(f"no {count} free ports on {LOOPBACK}")
        return tuple(found)

    def _load(self) -> dict[str, tuple[int, ...]]:
        if self._owned is None:
            self._owned = _parse_book(self._file, find_json(self._file))
        return self._owned

    def _write(self, owned: dict[str, tuple[int, ...]]) -> None:
        write_json(self._file, {name: list(ports) for name, ports in owned.items()})
        self._owned = owned


def is_free(port: int) -> bool:
    """Tell whether a program could listen on this loopback port now."""
    try:
        try_listen(LOOPBACK, port)
    except OSError:
        return False
    return True


def try_listen(host: str, port: int) -> int:
    """Listen on the address for a moment and return its port, which for port 0 is any free one.

    `host` is an IP address. Raises `OSError` when nobody could listen there now.
    """
    family = socket.AF_INET6 if ip_address(host).version == 6 else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((host, port))
        probe.listen(1)
        return int(probe.getsockname()[1])


def _candidates(ephemeral: tuple[int, int]) -> list[int]:
    low, high = ephemeral
    outside = [port for port in range(LOWEST, HIGHEST + 1) if port < low or port > high]
    return outside or list(range(FALLBACK[0], FALLBACK[1] + 1))


def _ephemeral_range() -> tuple[int, int]:
    try:
        low, high = _EPHEMERAL.read_text().split()
    except (OSError, ValueError):
        return 32_768, 60_999  # the kernel's own default
    return int(low), int(high)


def _parse_book(path: Path, rows: object) -> dict[str, tuple[int, ...]]:
    if rows is None:
        return {}
    if not isinstance(rows, dict) or not all(isinstance(ports, list) for ports in rows.values()):
        raise Invalid(Problem(str(path), "is not a list of ports by owner"))
    return {str(name): tuple(int(port) for port in ports) for name, ports in rows.items()}
