"""Endpoints of the embedded mode: the clusters' listeners of this machine's Envoy."""

from maserve.endpoints.local.provider import LocalProvider
from maserve.endpoints.local.publisher import LocalPublisher

__all__ = ["LocalProvider", "LocalPublisher"]
