"""Envoy's clusters, endpoints and listeners as plain dicts. Pure; pinned by golden files.

Two tiers: the gateway's listener sends to the clusters' listeners, those send to replicas. The
numbers for retries and circuit breakers were measured to lose no request when replicas die.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from maserve.envoy.types import Address, EnvoySettings

Resource = dict[str, Any]
"""One Envoy resource in its JSON form."""

RETRY_HEADER = "x-maserve-retry"
"""An answer of a cluster's listener with this header may be had from another cluster."""

NAMESPACE_HEADER = "x-maserve-namespace"
"""Tells a cluster's listener in which namespace the gateway has found the route."""

API = "type.googleapis.com/envoy"

MAX_HEADERS_KIB = 8
"""All of a request's head. A line of more than 8190 bytes makes Triton close the connection, which
looks like a replica that died: such a request is refused before, with 431."""

CORS_FILTER = "envoy.filters.http.cors"
HEAD_FILTER = "envoy.filters.http.lua"
HEAD_SCRIPT = "head"
"""A route that names this script answers HEAD: Triton refuses it, so a GET is asked for it."""

_HTTP_OPTIONS = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
_CONNECTION_MANAGER = "extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
_UPSTREAM_IDLE = "30s"
"""Shorter than what a replica or a listener keeps, so that Envoy is the one who closes."""


def build_service_cluster(
    name: str, *, endpoints_file: Path, is_ingress: bool, settings: EnvoySettings
) -> Resource:
    """Build the cluster over the addresses in `endpoints_file`.

    An ingress spreads over target clusters evenly; of replicas, less busy ones are preferred.
    """
    return {
        "@type": f"{API}.config.cluster.v3.Cluster",
        "name": name,
        "type": "EDS",
        "eds_cluster_config": {"eds_config": build_file_source(endpoints_file)},
        "connect_timeout": seconds(settings.connect_timeout_s),
        "lb_policy": "ROUND_ROBIN" if is_ingress else "LEAST_REQUEST",
        "circuit_breakers": {
            "thresholds": [
                {
                    "max_connections": 65536,
                    "max_pending_requests": 65536,
                    "max_requests": 65536,
                    "max_retries": 1000,
                }
            ]
        },
        "typed_extension_protocol_options": {
            _HTTP_OPTIONS: {
                "@type": f"type.googleapis.com/{_HTTP_OPTIONS}",
                "common_http_protocol_options": {"idle_timeout": _UPSTREAM_IDLE},
                "explicit_http_config": {"http_protocol_options": {}},
            }
        },
    }


def build_endpoints(name: str, addresses: Sequence[Address]) -> Resource:
    """Build the endpoint set of a service; without addresses nothing can be reached through it."""
    return {
        "@type": f"{API}.config.endpoint.v3.ClusterLoadAssignment",
        "cluster_name": name,
        "endpoints": [
            {
                "lb_endpoints": [
                    {"endpoint": {"address": build_address(address)}} for address in addresses
                ]
            }
        ],
    }


def build_listener(
    table: str, *, address: Address, routes_file: Path, is_gateway: bool, settings: EnvoySettings
) -> Resource:
    """Build the listener of one route table; listener and table share their name."""
    return {
        "@type": f"{API}.config.listener.v3.Listener",
        "name": table,
        "address": build_address(address),
        # Else two Envoys of one user could listen on one address and share its requests.
        "enable_reuse_port": False,
        "filter_chains": [
            {
                "filters": [
                    {
                        "name": "envoy.filters.network.http_connection_manager",
                        "typed_config": _build_connection_manager(
                            table, routes_file, is_gateway=is_gateway, settings=settings
                        ),
                    }
                ]
            }
        ],
    }


def build_address(address: Address) -> Resource:
    return {"socket_address": {"address": address.host, "port_value": address.port}}


def build_file_source(path: Path) -> Resource:
    """Build a source that Envoy reads at once, and again when a rename replaces the file."""
    return {"path_config_source": {"path": str(path)}, "resource_api_version": "V3"}


def seconds(value: float) -> str:
    """Render a duration as Envoy reads it."""
    return f"{value:.9f}".rstrip("0").rstrip(".") + "s"


def error_body(error: str, detail: str, **names: str) -> Mapping[str, str]:
    """Return the JSON body of every answer that Envoy gives itself."""
    return {"error": error, "detail": detail, **names}


def _build_connection_manager(
    table: str, routes_file: Path, *, is_gateway: bool, settings: EnvoySettings
) -> Resource:
    # Paths are made plain before any route is compared: dots resolved, slashes merged, and a path
    # with an encoded slash is refused, so that no spelling reaches what no route names.
    paths = {
        "normalize_path": True,
        "merge_slashes": True,
        "path_with_escaped_slashes_action": "REJECT_REQUEST",
    }
    return {
        "@type": f"{API}.{_CONNECTION_MANAGER}",
        "stat_prefix": table,
        "server_name": "maserve",
        "rds": {"route_config_name": table, "config_source": build_file_source(routes_file)},
        **paths,
        **(_GATEWAY_TRUST if is_gateway else _CLUSTER_TRUST),
        **({"max_request_headers_kb": MAX_HEADERS_KIB} if is_gateway else {}),
        "request_headers_timeout": "10s",
        "stream_idle_timeout": seconds(settings.idle_timeout_s),
        "common_http_protocol_options": {"idle_timeout": "3600s"},
        "local_reply_config": {"mappers": _build_reply_mappers(is_gateway=is_gateway)},
        # nginx speaks HTTP/1.0 to upstreams by default; the name is for requests without a Host.
        "http_protocol_options": {
            "accept_http_10": True,
            "default_host_for_http_10": "maserve",
        },
        "http_filters": [
            *(_CORS if is_gateway and settings.cors_origins else ()),
            *(() if is_gateway else _HEAD),
            {
                "name": "envoy.filters.http.router",
                "typed_config": {
                    "@type": f"{API}.extensions.filters.http.router.v3.Router",
                    "suppress_envoy_headers": True,
                },
            },
        ],
    }


# Run for reads alone, whose answers are small: the body is dropped here, since Envoy would send it.
_ASK_WITH_GET = """
function envoy_on_request(handle)
  if handle:headers():get(":method") == "HEAD" then
    handle:headers():replace(":method", "GET")
    handle:streamInfo():dynamicMetadata():set("maserve.head", "asked", "yes")
  end
end

function envoy_on_response(handle)
  local head = handle:streamInfo():dynamicMetadata():get("maserve.head")
  if head ~= nil then
    local body = handle:body()
    if body ~= nil then
      body:setBytes("")
    end
  end
end
"""
_HEAD: list[Resource] = [
    {
        "name": HEAD_FILTER,
        "typed_config": {
            "@type": f"{API}.extensions.filters.http.lua.v3.Lua",
            "source_codes": {HEAD_SCRIPT: {"inline_string": _ASK_WITH_GET}},
        },
    }
]
_CORS: list[Resource] = [
    {
        "name": CORS_FILTER,
        "typed_config": {"@type": f"{API}.extensions.filters.http.cors.v3.Cors"},
    }
]

# Every client counts as external, also one on this machine: what it sends as x-envoy-* (retry and
# timeout overrides) is dropped. The range can hold no client.
_GATEWAY_TRUST: Resource = {
    "use_remote_address": True,
    "internal_address_config": {
        "cidr_ranges": [{"address_prefix": "255.255.255.255", "prefix_len": 32}]
    },
    "preserve_external_request_id": True,
    "always_set_request_id_in_response": True,
}
_CLUSTER_TRUST: Resource = {**_GATEWAY_TRUST, "skip_xff_append": True}


def _build_reply_mappers(*, is_gateway: bool) -> list[Resource]:
    """Say in JSON what went wrong; nothing was done by a replica yet in the first case."""
    untouched = _build_mapper(
        ["UH", "UF", "NC", "UO"], "no ready replica", "no replica can take the request now"
    )
    if not is_gateway:
        untouched["headers_to_add"] = [build_header(RETRY_HEADER, "no-replica")]
    return [
        untouched,
        {
            **_build_mapper([], "bad request", "the path or a header is malformed"),
            "filter": {"status_code_filter": {"comparison": _BAD_REQUEST}},
        },
        {
            **_build_mapper(
                [],
                "request head too large",
                f"path and headers take {MAX_HEADERS_KIB} KiB at most",
            ),
            "filter": {"status_code_filter": {"comparison": _HEAD_TOO_LARGE}},
        },
        _build_mapper(["UT", "DT", "SI"], "timeout", "nothing moved for longer than allowed"),
        _build_mapper(
            ["UC", "UR", "LR", "URX", "UPE"],
            "replica failed",
            "the replica ended before it answered",
        ),
    ]


_HEAD_TOO_LARGE: Resource = {
    "op": "EQ",
    "value": {"default_value": 431, "runtime_key": "maserve.431"},
}
_BAD_REQUEST: Resource = {"op": "EQ", "value": {"default_value": 400, "runtime_key": "maserve.400"}}


def _build_mapper(flags: list[str], error: str, detail: str) -> Resource:
    return {
        "filter": {"response_flag_filter": {"flags": flags}},
        "body_format_override": {"json_format": dict(error_body(error, detail))},
    }


def build_header(name: str, value: str) -> Resource:
    """Build a header that replaces whatever the message had under that name."""
    return {
        "header": {"key": name, "value": value},
        "append_action": "OVERWRITE_IF_EXISTS_OR_ADD",
    }
