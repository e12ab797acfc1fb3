"""The only door to Envoy: one process per data folder, its resources, file swaps, acknowledgements.

Invariants: a route never points at what is not there yet (make before break); a call returns only
when the running Envoy has acknowledged; only inference paths pass; Envoy outlives the control
plane. Knows services, routes and clusters, no resource of ours.
"""

from maserve.envoy.dataplane import DataPlane
from maserve.envoy.listening import Ports
from maserve.envoy.manifest import NAMESPACE_HEADER
from maserve.envoy.process import PROGRAM
from maserve.envoy.state import RouteState
from maserve.envoy.swap import Rejected
from maserve.envoy.types import Address, EnvoySettings, RouteRef, RouteRule

__all__ = [
    "DataPlane",
    "PROGRAM",
    "EnvoySettings",
    "Ports",
    "RouteRef",
    "RouteRule",
    "RouteState",
    "Address",
    "Rejected",
    "NAMESPACE_HEADER",
]
