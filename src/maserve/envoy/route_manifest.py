"""Envoy's route tables as plain dicts. Pure; pinned by golden files.

A rule becomes the few methods and paths that inference needs; all else below its path is answered
here. Rules are compared from the longest path to the shortest, exact ones first.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from maserve.base.keys import ClusterId
from maserve.envoy import inference_paths as paths
from maserve.envoy.gateway_answers import build_answer, build_cors, build_own_answers, method_is
from maserve.envoy.layout import service_name, table_name
from maserve.envoy.manifest import (
    API,
    HEAD_FILTER,
    HEAD_SCRIPT,
    NAMESPACE_HEADER,
    RETRY_HEADER,
    Resource,
    build_header,
    error_body,
    seconds,
)
from maserve.envoy.types import EnvoySettings, RouteRef, RouteRule, ServiceRef


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRule:
    """A rule of a table: whose it is, and whether another namespace's older route owns its path."""

    ref: RouteRef
    rule: RouteRule
    is_shadowed: bool


def build_table(
    cluster: ClusterId | None, rules: Sequence[TableRule], settings: EnvoySettings
) -> Resource:
    """Build the route table of the gateway (cluster None) or of one cluster's listener."""
    ordered = sorted(rules, key=_precedence)
    build = _build_gateway_rule if cluster is None else _build_cluster_rule
    routes = [route for rule in ordered for route in build(rule, settings)]
    first = build_own_answers(settings) if cluster is None else []
    last = _build_gateway_fallbacks(ordered) if cluster is None else _build_cluster_fallbacks()
    return {
        "@type": f"{API}.config.route.v3.RouteConfiguration",
        "name": table_name(cluster),
        "virtual_hosts": [
            {
                "name": "all",
                "domains": ["*"],
                "request_body_buffer_limit": str(settings.retry_body_limit_bytes),
                "retry_policy": _GATEWAY_RETRY if cluster is None else _CLUSTER_RETRY,
                "routes": first + routes + last,
                **(build_cors(settings) if cluster is None else {}),
            }
        ],
        **(_GATEWAY_HEADERS if cluster is None else _CLUSTER_HEADERS),
    }


def _precedence(rule: TableRule) -> tuple[bool, int, str, str]:
    path = rule.rule.match_path
    return (not rule.rule.is_exact, -len(path), path, str(rule.ref))


def _build_gateway_rule(rule: TableRule, settings: EnvoySettings) -> list[Resource]:
    if rule.is_shadowed:
        return []
    passing = [
        {**route, "request_headers_to_add": [build_header(NAMESPACE_HEADER, rule.ref.namespace)]}
        for route in _build_gateway_passing(rule, settings)
    ]
    return passing if rule.rule.is_exact else [*passing, _build_no_inference_path(rule.rule)]


def _build_cluster_rule(rule: TableRule, settings: EnvoySettings) -> list[Resource]:
    """Serve the gateway's requests by namespace, others (without one) by the oldest route."""
    build_match = _namespace_is if rule.is_shadowed else _namespace_is_or_missing
    header = build_match(rule.ref.namespace)
    return [_with_header(route, header) for route in _build_cluster_passing(rule, settings)]


def _build_gateway_passing(rule: TableRule, settings: EnvoySettings) -> list[Resource]:
    action = _build_action(rule, settings)
    path = rule.rule.match_path
    if rule.rule.is_exact:
        return [_build_exact(path, action)]
    posts = _build_below(path, paths.POST_METHODS, paths.gateway_posts(path), action)
    reads = _build_below(path, paths.READ_METHODS, paths.gateway_reads(path), action)
    return [posts, reads]


def _build_cluster_passing(rule: TableRule, settings: EnvoySettings) -> list[Resource]:
    """Lead every way to call the model to it; another model's name is unknown below this path."""
    action = _build_action(rule, settings)
    path = rule.rule.match_path
    if rule.rule.is_exact:
        return [{**_build_exact(path, action), **_ANSWERS_HEAD}]
    names = path.rpartition("/")[2], rule.rule.rewrite_path.rpartition("/")[2]
    to_model = _with_rewrite(action, paths.model_base(path, names), rule.rule.rewrite_path)
    to_program = {**action, "prefix_rewrite": paths.SERVER_BASE}
    below = f"{path}{paths.SERVER_BASE}"
    return [
        _build_below(path, paths.POST_METHODS, paths.model_posts(path, names), to_model),
        {
            **_build_below(path, paths.READ_METHODS, paths.model_reads(path, names), to_model),
            **_ANSWERS_HEAD,
        },
        {
            **_build_below(below, paths.READ_METHODS, paths.server_reads(path), to_program),
            **_ANSWERS_HEAD,
        },
        {
            "match": {"path_separated_prefix": path},
            **build_answer(404, error_body("unknown path", f"{names[0]} serves model {names[1]}")),
        },
    ]


def _build_exact(path: str, action: Resource) -> Resource:
    return {
        "match": {"path": path, "headers": [method_is(paths.READ_METHODS)]},
        "route": action,
    }


def _build_below(path: str, methods: str, pattern: str, action: Resource) -> Resource:
    headers = [method_is(methods), _path_is(pattern)]
    return {"match": {"path_separated_prefix": path, "headers": headers}, "route": action}


def _build_action(rule: TableRule, settings: EnvoySettings) -> Resource:
    """Build where a request goes. It may last as long as something of it moves."""
    service = ServiceRef(
        cluster=rule.ref.cluster, namespace=rule.ref.namespace, name=rule.rule.service
    )
    return {
        "cluster": service_name(service),
        "timeout": "0s",
        "idle_timeout": seconds(settings.idle_timeout_s),
        **_build_rewrite(rule.rule),
    }


def _build_rewrite(rule: RouteRule) -> Resource:
    """Rewrite what matched; an exact match is rewritten as a whole by its prefix rewrite too."""
    if rule.is_exact or not rule.is_full_rewrite:
        return {"prefix_rewrite": rule.rewrite_path}
    return _rewrite("^.*$", rule.rewrite_path)


def _with_rewrite(action: Resource, pattern: str, path: str) -> Resource:
    """Return the action with what `pattern` matches at the path's start replaced by `path`."""
    kept = {key: value for key, value in action.items() if key != "prefix_rewrite"}
    return {**kept, **_rewrite(f"^{pattern}", path)}


def _rewrite(pattern: str, path: str) -> Resource:
    return {"regex_rewrite": {"pattern": {"regex": pattern}, "substitution": path}}


def _build_no_inference_path(rule: RouteRule) -> Resource:
    detail = f"below {rule.match_path} only inference paths are served"
    return {
        "match": {"path_separated_prefix": rule.match_path},
        **build_answer(404, error_body("unknown path", detail)),
    }


def _build_gateway_fallbacks(rules: Sequence[TableRule]) -> list[Resource]:
    """Say which part of the path is unknown: the deployment of a known server, or the server."""
    known = dict.fromkeys(_server_path(rule.rule) for rule in rules)
    unknown_deployment = [
        {
            "match": {"path_separated_prefix": path},
            **build_answer(
                404,
                error_body(
                    "unknown deployment",
                    f"inference server {path.strip('/')} serves no such deployment or method",
                    inference_server=path.strip("/"),
                ),
            ),
        }
        for path in sorted(known, key=lambda path: (-len(path), path))
    ]
    unknown_server = build_answer(
        404, error_body("unknown inference server", "the path names no inference server")
    )
    return [*unknown_deployment, {"match": {"prefix": "/"}, **unknown_server}]


def _server_path(rule: RouteRule) -> str:
    """Return the path of the server a rule belongs to: its own, or that above the deployment."""
    above = rule.match_path.rpartition("/")[0]
    return rule.match_path if rule.is_exact or not above else above


def _build_cluster_fallbacks() -> list[Resource]:
    """Leave a path that the gateway knows but this cluster does not to another cluster."""
    absent = build_answer(
        503, error_body("no ready replica", "no cluster serves the deployment now")
    )
    absent["response_headers_to_add"].append(build_header(RETRY_HEADER, "no-route"))
    unknown = build_answer(404, error_body("unknown path", "this cluster serves no such path"))
    return [
        {"match": {"prefix": "/", "headers": [_ANY_NAMESPACE]}, **absent},
        {"match": {"prefix": "/"}, **unknown},
    ]


def _with_header(route: Resource, header: Resource) -> Resource:
    match = route["match"]
    return {**route, "match": {**match, "headers": [header, *match.get("headers", ())]}}


def _path_is(regex: str) -> Resource:
    return {"name": ":path", "string_match": {"safe_regex": {"regex": regex}}}


def _namespace_is(namespace: str) -> Resource:
    return {"name": NAMESPACE_HEADER, "string_match": {"exact": namespace}}


def _namespace_is_or_missing(namespace: str) -> Resource:
    return {
        "name": NAMESPACE_HEADER,
        "string_match": {"safe_regex": {"regex": f"({re.escape(namespace)})?"}},
        "treat_missing_header_as_empty": True,
    }


_ANSWERS_HEAD: Resource = {
    "typed_per_filter_config": {
        HEAD_FILTER: {
            "@type": f"{API}.extensions.filters.http.lua.v3.LuaPerRoute",
            "name": HEAD_SCRIPT,
        }
    }
}

_ANY_NAMESPACE: Resource = {"name": NAMESPACE_HEADER, "present_match": True}

# Headers that Envoy adds for its own use and that say something about this machine.
_INTERNAL_HEADERS = ["x-envoy-external-address", "x-envoy-original-path", "x-envoy-internal"]
_GATEWAY_HEADERS: Resource = {"response_headers_to_remove": [RETRY_HEADER]}
_CLUSTER_HEADERS: Resource = {
    "request_headers_to_remove": [NAMESPACE_HEADER, *_INTERNAL_HEADERS],
}

_ANOTHER_HOST: Resource = {
    "retry_host_predicate": [
        {
            "name": "envoy.retry_host_predicates.previous_hosts",
            "typed_config": {
                "@type": f"{API}.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate"
            },
        }
    ],
    "host_selection_retry_max_attempts": "10",
    "retry_back_off": {"base_interval": "0.005s", "max_interval": "0.1s"},
}
# 404 is a replica's word for a model it does not have, whether it was never loaded or has gone: it
# was run nowhere, and another replica may have it (ADR 0017).
_CLUSTER_RETRY: Resource = {
    "retry_on": "connect-failure,refused-stream,reset,unavailable,retriable-status-codes",
    "num_retries": 2,
    "retriable_status_codes": [404],
    **_ANOTHER_HOST,
}
# A cluster that has no replica or no route for the request marks its answer; nothing was run there.
# 404 is a replica's word for a model it does not have: a request that was sent slowly may come to
# its end after the switch and the unload, and finds the new model when its path is looked up again.
_GATEWAY_RETRY: Resource = {
    "retry_on": "connect-failure,refused-stream,reset,retriable-headers,retriable-status-codes",
    "num_retries": 3,
    "retriable_status_codes": [404],
    "retriable_headers": [{"name": RETRY_HEADER, "present_match": True}],
    **_ANOTHER_HOST,
}
