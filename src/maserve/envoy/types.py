"""The values the data plane is described with: services, routes, settings."""

from dataclasses import dataclass, field
from pathlib import Path

from maserve.base.keys import ClusterId

LOOPBACK = "127.0.0.1"
"""Where the clusters' listeners are; only the gateway's address is a setting."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Address:
    """One TCP address; `host` is an IP address, never a name (Envoy does not resolve it).

    `label` is kept for whoever set it (the cluster of an ingress); Envoy does not see it.
    """

    host: str
    port: int
    label: str = ""

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceRef:
    """A named set of addresses in one cluster; cluster None is the control plane."""

    cluster: ClusterId | None
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.cluster or ''}/{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteRef:
    """A named route in one cluster's table; cluster None is the gateway's table."""

    cluster: ClusterId | None
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.cluster or ''}/{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteRule:
    """One rule of a route. A rule that is not exact matches whole path segments.

    Only inference paths below `match_path` pass, whatever the rule says.
    `service` is in the route's own cluster and namespace.
    """

    match_path: str
    is_exact: bool
    rewrite_path: str
    is_full_rewrite: bool
    service: str
    service_port: int = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvoySettings:
    """How the one Envoy of this data folder runs.

    `idle_timeout_s` bounds how long nothing of a request or its answer may move; 0 means no bound,
    and so has a request that moves. `cors_origins` are the web pages' origins that may ask, `*`
    stands for all. A request whose body
    is larger than `retry_body_limit_bytes` is passed on like any other but is not retried.
    `drain_s` is how long a clean stop lets requests end. One that runs but has not answered
    `liveness_failures` questions in a row, one each `liveness_period_s`, is killed and replaced.
    """

    folder: Path
    gateway: Address = field(default_factory=lambda: Address(host="127.0.0.1", port=8880))
    gateway_setting: str = "--gateway-address"
    idle_timeout_s: float = 300.0
    cors_origins: tuple[str, ...] = ()
    retry_body_limit_bytes: int = 16 * 1024 * 1024
    connect_timeout_s: float = 1.0
    acknowledge_timeout_s: float = 5.0
    start_timeout_s: float = 15.0
    drain_s: float = 5.0
    liveness_period_s: float = 5.0
    liveness_failures: int = 4
    concurrency: int = 2
