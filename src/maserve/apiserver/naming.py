"""Rules that the proto files do not state, most of all of names that others are made of. Pure.

Source: behaviour 1.5 [design] and 17.
"""

from collections.abc import Iterator

from maserve.base.errors import Invalid, Problem
from maserve.base.keys import Key
from maserve.resource import Resource, is_dns_label, is_dns_subdomain, kind_of
from maserve.resource.names import MAX_INFERENCE_SERVER_NAME
from maserve.wire import v2

_LABEL = "lower-case letters, digits and inner dashes, at most 63 characters"
_LABEL_KINDS = frozenset({"InferenceServer", "Deployment", "Model"})
"""Kinds whose names become labels, path segments or folder names; a dot is not allowed in them."""


def unwritten_problems(resource: Resource) -> Iterator[Problem]:
    """Yield what is wrong beyond what the proto files and Kubernetes ask of a resource."""
    name = resource.metadata.name
    # What is no subdomain either was told already: of one field only the first broken rule is.
    if is_dns_subdomain(name) and kind_of(resource).name in _LABEL_KINDS and not is_dns_label(name):
        yield Problem("metadata.name", f"must be a DNS label ({_LABEL}): {name!r}")
    if isinstance(resource, v2.InferenceServer):
        yield from _inference_server_problems(resource)
    if isinstance(resource, v2.Cluster) and resource.spec.WhichOneof("cluster") is None:
        yield Problem("", "one field in oneof spec.cluster(kubernetes) must be set")


def check_key(namespace: str, name: str) -> Key:
    """Return the key that a request names. Raises `Invalid` if no object can be called so."""
    problems = [
        Problem(field, text)
        for field, value in (("namespace", namespace), ("name", name))
        if (text := _segment_problem(value))
    ]
    if problems:
        raise Invalid(*problems)
    return Key(namespace, name)


def _segment_problem(value: str) -> str:
    if not value:
        return "cannot be empty"
    if value in {".", ".."} or any(character in value for character in "/%"):
        return f"cannot be '.' or '..', or hold '/' or '%': {value!r}"
    return ""


def _inference_server_problems(server: v2.InferenceServer) -> Iterator[Problem]:
    name = server.metadata.name
    if is_dns_label(name) and len(name) > MAX_INFERENCE_SERVER_NAME:
        text = f"must be at most {MAX_INFERENCE_SERVER_NAME} characters long, to leave room for"
        yield Problem("metadata.name", f"{text} names made of it: it has {len(name)}")
    seen: set[str] = set()
    for index, target in enumerate(server.spec.cluster_targets):
        where = f"spec.cluster_targets[{index}].cluster_id"
        if not is_dns_label(target.cluster_id):
            yield Problem(where, f"must be a DNS label ({_LABEL}): {target.cluster_id!r}")
        elif target.cluster_id in seen:
            yield Problem(where, f"is there twice: {target.cluster_id!r}")
        seen.add(target.cluster_id)
