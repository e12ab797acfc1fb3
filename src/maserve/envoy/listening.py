"""Where Envoy may listen: the clusters' ports, and whether an address is free."""

import errno
from collections.abc import Iterable
from typing import Protocol

import structlog

from maserve.base.clock import Clock
from maserve.base.errors import Invalid, Problem
from maserve.base.keys import ClusterId
from maserve.envoy.types import LOOPBACK, Address
from maserve.host import Worker, try_listen

_LAST_MOMENT_S = 1.0
"""How long a killed Envoy may hold its sockets after it counts as ended."""

_POLL_S = 0.05

log = structlog.get_logger()


class Ports(Protocol):
    """Loopback ports that survive a restart. Calls block."""

    def allocate(self, owner: str, count: int) -> tuple[int, ...]:
        """Return the owner's ports: the remembered ones, else new ones."""
        ...

    def replace(self, owner: str, count: int) -> tuple[int, ...]:
        """Return new ports instead of the remembered ones."""
        ...

    def release(self, owner: str) -> None:
        """Forget the owner's ports."""
        ...


class ListenerPorts:
    """The ports of the clusters' listeners, by cluster."""

    def __init__(self, ports: Ports, worker: Worker) -> None:
        self._ports = ports
        self._worker = worker

    async def allocate(self, cluster: ClusterId) -> int:
        """Return the cluster's port: the remembered one, else a new one."""
        (port,) = await self._worker.call(self._ports.allocate, _owner(cluster), 1)
        return port

    async def replace(self, cluster: ClusterId) -> int:
        """Return a new port instead of the remembered one."""
        (port,) = await self._worker.call(self._ports.replace, _owner(cluster), 1)
        return port

    async def find_free(self, cluster: ClusterId, port: int) -> int:
        """Return `port` if nobody listens there, else a new one."""
        try:
            address = Address(host=LOOPBACK, port=port)
            await self._worker.call(check_address_free, address, _owner(cluster))
        except Invalid:
            port = await self.replace(cluster)
            log.warning("cluster listener moved", cluster=cluster, port=port)
        return port

    async def release(self, clusters: Iterable[ClusterId]) -> None:
        """Forget the clusters' ports."""
        for cluster in sorted(clusters):
            await self._worker.call(self._ports.release, _owner(cluster))


async def wait_address_free(
    address: Address, setting: str, *, worker: Worker, clock: Clock
) -> None:
    """Raise `Invalid` when somebody listens there, and not only one who is just ending."""
    deadline = clock.monotonic() + _LAST_MOMENT_S
    while True:
        try:
            await worker.call(check_address_free, address, setting)
        except Invalid:
            if clock.monotonic() > deadline:
                raise
            await clock.sleep(_POLL_S)
        else:
            return


def check_address_free(address: Address, setting: str) -> None:
    """Raise `Invalid` naming the address and its setting when nobody could listen there now."""
    try:
        try_listen(address.host, address.port)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise taken(address, setting) from error
        text = f"{address} fails: {error.strerror}; choose another one"
        raise Invalid(Problem(setting, text)) from error


def taken(address: Address, setting: str) -> Invalid:
    """Return what is said of an address where somebody else listens."""
    return Invalid(Problem(setting, f"{address} is in use; choose another one"))


def _owner(cluster: ClusterId) -> str:
    return f"envoy cluster {cluster}"
