"""Publishes a server's clusters as endpoints of the gateway."""

from collections.abc import Mapping

from maserve.base.errors import Invalid, Problem
from maserve.base.keys import ClusterId
from maserve.endpoints.types import Endpoint
from maserve.envoy import DataPlane
from maserve.resource import names
from maserve.wire import v2


class LocalPublisher:
    """Keeps the map in the data plane's own state. Only plain HTTP is spoken on this machine."""

    def __init__(self, plane: DataPlane) -> None:
        self._plane = plane

    async def sync(
        self, server: v2.InferenceServer, endpoints: Mapping[ClusterId, Endpoint]
    ) -> None:
        unfit = [cluster for cluster, endpoint in endpoints.items() if endpoint.scheme != "http"]
        if unfit:
            self._plane.let_go(endpoints)  # the next try asks for its listeners again
            raise Invalid(*(Problem(f"endpoints[{c}].scheme", "is not http") for c in unfit))
        clusters = {c: (endpoint.host, endpoint.port) for c, endpoint in endpoints.items()}
        await self._plane.set_ingresses(*_service(server), clusters)

    async def get(self, server: v2.InferenceServer) -> dict[ClusterId, Endpoint]:
        found = self._plane.find_endpoints(None, *_service(server)) or ()
        return {
            ClusterId(address.label): Endpoint(host=address.host, port=address.port)
            for address in sorted(found, key=lambda address: address.label)
        }

    async def delete(self, server: v2.InferenceServer) -> None:
        await self._plane.remove_service(None, *_service(server))


def _service(server: v2.InferenceServer) -> tuple[str, str]:
    return server.metadata.namespace, names.endpoints_service(server.metadata.name)
