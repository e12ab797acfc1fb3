"""The typed gRPC client: resources in and out, errors of `base.errors`, watches, waits.

**Invariant:** knows the wire and nothing of what serves it; works against any API server of the
same contract, `Watch`, `Describe` and `Logs` excepted.
"""

from maserve.client.client import Client
from maserve.client.errors import ServerFault
from maserve.client.types import Applied, Change, ChangeType, ClientSettings

__all__ = ["Client", "ClientSettings", "Applied", "Change", "ChangeType", "ServerFault"]
