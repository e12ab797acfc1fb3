"""Routes of the embedded mode: Envoy route tables, written by the data plane of this machine.

A target with a Kubernetes connection is treated as the local process group of its cluster id.
"""

from maserve.routing.local.manager import LocalRoutingManager

__all__ = ["LocalRoutingManager"]
