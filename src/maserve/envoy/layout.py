"""Where Envoy's files lie, and how its resources are called.

Pure: names and paths only. A name occurs in Envoy's statistics, so it holds no dot
and no colon.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from maserve.base.keys import ClusterId
from maserve.envoy.types import ServiceRef

GATEWAY_TABLE = "gateway"

_SOCKET_PATH_LIMIT = 100
"""Below the 107 bytes that a unix socket's path may have on Linux."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The paths inside the data plane's folder."""

    folder: Path

    @property
    def state(self) -> Path:
        return self.folder / "state.json"

    @property
    def bootstrap(self) -> Path:
        return self.folder / "bootstrap.json"

    @property
    def log(self) -> Path:
        return self.folder / "envoy.log"

    @property
    def listeners(self) -> Path:
        return self.folder / "discovery" / "listeners.json"

    @property
    def clusters(self) -> Path:
        return self.folder / "discovery" / "clusters.json"

    def endpoints(self, service_name: str) -> Path:
        return self.folder / "discovery" / "endpoints" / f"{_file_name(service_name)}.json"

    def routes(self, table: str) -> Path:
        return self.folder / "discovery" / "routes" / f"{_file_name(table)}.json"

    def admin_socket(self, short_root: Path) -> Path:
        """Return the admin socket: in the folder, or below `short_root` where its path is too long.

        The short path is the same each time for one folder, so that a later process finds it.
        """
        inside = self.folder / "admin.sock"
        if len(bytes(inside)) <= _SOCKET_PATH_LIMIT:
            return inside
        digest = hashlib.sha256(bytes(self.folder.absolute())).hexdigest()[:16]
        return short_root / f"maserve-{digest}" / "admin.sock"


def service_name(ref: ServiceRef) -> str:
    """Return the name of a service's Envoy cluster."""
    return f"service/{ref.cluster or ''}/{ref.namespace}/{ref.name}"


def table_name(cluster: ClusterId | None) -> str:
    """Return the name of a route table, which is its listener's too."""
    return f"cluster/{cluster}" if cluster else GATEWAY_TABLE


def _file_name(name: str) -> str:
    return name.replace("/", "~")
