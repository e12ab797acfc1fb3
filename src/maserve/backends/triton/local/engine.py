"""The serving program of a replica, seen from the loops that keep it: how it is started."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from maserve.base.keys import ClusterId, Key, ReplicaName


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineLaunch:
    """Where one engine listens and finds its models. `shm_prefix` names its shared memory."""

    http_port: int
    grpc_port: int
    metrics_port: int
    repository: Path
    shm_prefix: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command line with its whole environment."""

    argv: tuple[str, ...]
    env: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSyncLaunch:
    """What the model-sync process beside one replica is told.

    It writes `readiness` for the readiness probe and `status` for people.
    """

    replica: ReplicaName
    cluster: ClusterId
    key: Key
    config: Path
    repository: Path
    cache: Path
    triton_url: str
    triton_grpc: str
    readiness: Path
    status: Path


ModelSyncCommand = Callable[[ModelSyncLaunch], Command]
"""Builds the command line of model-sync; the composition root knows the program."""


class Engine(Protocol):
    """One installed version of a serving program with Triton's HTTP interface."""

    async def prepare(self) -> str:
        """Make it ready to start, once, and return its version.

        Raises `Unsupported` when a person has to act (what is missing, and how to get it),
        `Unavailable` for what a retry may clear.
        """
        ...

    def command(self, launch: EngineLaunch) -> Command:
        """Return how to start it. Only after `prepare`."""
        ...


class ReplicaEndpoints(Protocol):
    """The data plane's list of replicas that admit traffic."""

    async def set_endpoints(
        self,
        cluster: ClusterId,
        namespace: str,
        service: str,
        addresses: Sequence[tuple[str, int]],
    ) -> None:
        """Make `addresses` the service's only ones; returns once the data plane has acknowledged.

        Raises `Unavailable` for what a retry may clear. An empty list is a service without
        replicas.
        """
        ...

    async def remove_service(self, cluster: ClusterId, namespace: str, service: str) -> None:
        """Remove a service that will have no replicas any more; absent is success."""
        ...
