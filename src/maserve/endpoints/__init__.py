"""Where clusters admit traffic: the Provider and Publisher ports.

Invariant: implementations are sub-packages and are never imported from here.
"""

from maserve.endpoints.protocol import Provider, Publisher
from maserve.endpoints.types import Endpoint

__all__ = ["Endpoint", "Provider", "Publisher"]
