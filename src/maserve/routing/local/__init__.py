"""Routes of the embedded mode: Envoy route tables, written by the data plane of this machine.

A target with a Kubernetes connection is treated as the local process group of its cluster id.
"""

from maserve.routing.local.manager import LocalRoutingManager
from maserve.routing.local.probe import LocalTrafficProbe

__all__ = ["LocalRoutingManager", "LocalTrafficProbe"]
