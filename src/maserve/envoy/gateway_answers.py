"""What the gateway answers by itself, whatever is served behind it. Pure."""

import json
from typing import Any

from maserve.envoy.inference_paths import READ_METHODS
from maserve.envoy.manifest import API, CORS_FILTER, Resource, build_header
from maserve.envoy.types import EnvoySettings

HEALTH_PATH = "/-/healthy"
"""Answers as long as the gateway does: for load balancers in front of it."""


def build_own_answers(settings: EnvoySettings) -> list[Resource]:
    """Build the routes that are compared before any server's."""
    preflight = [_build_preflight()] if settings.cors_origins else []
    return [_build_grpc_answer(), _build_health_answer(), *preflight]


def build_cors(settings: EnvoySettings) -> Resource:
    """Let pages of the allowed origins ask the gateway; without any there is no such policy."""
    if not settings.cors_origins:
        return {}
    anywhere = {"safe_regex": {"regex": ".*"}}
    origins = [anywhere if each == "*" else {"exact": each} for each in settings.cors_origins]
    return {
        "typed_per_filter_config": {
            CORS_FILTER: {
                "@type": f"{API}.extensions.filters.http.cors.v3.CorsPolicy",
                "allow_origin_string_match": origins,
                "allow_methods": "GET, HEAD, POST, OPTIONS",
                "allow_headers": "content-type, inference-header-content-length, accept",
                "expose_headers": "inference-header-content-length",
                "max_age": "600",
            }
        }
    }


def build_answer(status: int, body: Any) -> Resource:
    """Build an answer in JSON."""
    return {
        "direct_response": {"status": status, "body": {"inline_string": json.dumps(body) + "\n"}},
        "response_headers_to_add": [build_header("content-type", "application/json")],
    }


def method_is(regex: str) -> Resource:
    """Build what a request's method must be."""
    return {"name": ":method", "string_match": {"safe_regex": {"regex": regex}}}


def _build_health_answer() -> Resource:
    """Answer for the gateway itself, on a path that is no server's: those begin with a letter."""
    match = {"path": HEALTH_PATH, "headers": [method_is(READ_METHODS)]}
    return {"match": match, **build_answer(200, {"gateway": "serving"})}


def _build_grpc_answer() -> Resource:
    """Say where gRPC inference is: Envoy makes 404 UNIMPLEMENTED, with the body as its message."""
    header = {"name": "content-type", "string_match": {"prefix": "application/grpc"}}
    detail = "the gateway serves the protocol over HTTP only; post to /{server}/{deployment}/infer"
    return {
        "match": {"prefix": "/", "headers": [header]},
        "direct_response": {"status": 404, "body": {"inline_string": detail}},
    }


def _build_preflight() -> Resource:
    """Build what a browser's question before a request meets: the CORS filter needs a real route.

    It answers allowed origins itself; all others find that there is nothing.
    """
    asks = {"name": "access-control-request-method", "present_match": True}
    return {
        "match": {"prefix": "/", "headers": [method_is("OPTIONS"), asks]},
        "route": {"cluster": "nowhere", "cluster_not_found_response_code": "NOT_FOUND"},
    }
