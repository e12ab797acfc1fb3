"""The values of routes: what is matched, rewritten and where it goes (behaviour 7)."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from maserve.base.keys import ClusterId, Key
from maserve.resource import names


class MatchType(StrEnum):
    """How a rule's path is compared; a prefix matches whole path segments."""

    EXACT = "Exact"
    PREFIX = "PathPrefix"


class RewriteType(StrEnum):
    """What the rewrite replaces."""

    FULL_PATH = "ReplaceFullPath"
    PREFIX = "ReplacePrefixMatch"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule of a route, identified by `match_path`.

    `backend` is a Service name in the route's namespace.
    """

    match_path: str
    match_type: MatchType
    rewrite_path: str
    rewrite_type: RewriteType
    backend: str
    backend_port: int = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteConfig:
    """What a new route starts with.

    `owner_uid` is empty for routes nobody owns (other clusters).
    """

    owner_name: str = ""
    owner_uid: str = ""
    rules: tuple[Rule, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteId:
    """One route: its cluster (None: the control plane) and its namespace and name."""

    cluster: ClusterId | None
    key: Key

    @classmethod
    def traffic(cls, server: Key, cluster: ClusterId) -> Self:
        """Name a server's traffic route in one cluster."""
        return cls(cluster=cluster, key=Key(server.namespace, names.traffic_route(server.name)))

    @classmethod
    def discovery(cls, server: Key) -> Self:
        """Name a server's discovery route on the control plane."""
        return cls(cluster=None, key=Key(server.namespace, names.discovery_route(server.name)))

    def __str__(self) -> str:
        return f"{self.key} in cluster {self.cluster}" if self.cluster else str(self.key)
