"""Asks a cluster's own listener, or the gateway, which model answers for a Deployment."""

import json

from maserve.base.errors import Unavailable
from maserve.base.keys import ClusterId, Key
from maserve.envoy import NAMESPACE_HEADER, DataPlane
from maserve.host import HttpClient
from maserve.resource import names
from maserve.wire import v2

TIMEOUT_S = 2.0


class LocalTrafficProbe:
    """Sends the request that a gateway, or a caller of it, would send for the model's metadata."""

    def __init__(self, plane: DataPlane, http: HttpClient) -> None:
        self._plane = plane
        self._http = http

    async def find_answering_model(
        self, target: v2.ClusterTarget | None, server: Key, deployment: str
    ) -> str | None:
        """See `TrafficProbe.find_answering_model`."""
        url = self._find_url(target, server, deployment)
        if url is None:
            return None
        try:
            answer = await self._http.request(
                "GET", url, timeout_s=TIMEOUT_S, headers={NAMESPACE_HEADER: server.namespace}
            )
        except Unavailable:
            return None
        return parse_model_name(answer.body) if answer.status == 200 else ""

    def _find_url(
        self, target: v2.ClusterTarget | None, server: Key, deployment: str
    ) -> str | None:
        if target is None:
            host, port = self._plane.gateway_address
            return f"http://{host}:{port}{names.discovery_path(server.name, deployment)}"
        address = self._plane.find_cluster_listener(ClusterId(target.cluster_id))
        if address is None:
            return None
        host, port = address
        return f"http://{host}:{port}{names.traffic_path(server.name, deployment)}"


def parse_model_name(body: bytes) -> str:
    """Return the name in a model's metadata, empty when there is none."""
    try:
        metadata = json.loads(body)
    except ValueError:
        return ""
    return str(metadata.get("name", "")) if isinstance(metadata, dict) else ""
