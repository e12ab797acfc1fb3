"""The shapes of names, labels and owner references that a Kubernetes API server accepts.

Both stores refuse the same things, so that a manifest that works on one machine works in a cluster.
"""

import re
from collections.abc import Iterator

from maserve.base.errors import Problem
from maserve.resource.kinds import Resource

MAX_SUBDOMAIN = 253
MAX_LABEL = 63

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(rf"{_LABEL.pattern}(\.{_LABEL.pattern})*")
_QUALIFIED_PART = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")


def is_dns_label(text: str) -> bool:
    """Tell whether `text` is a DNS-1123 label: at most 63 of a-z, 0-9 and inner dashes."""
    return len(text) <= MAX_LABEL and _LABEL.fullmatch(text) is not None


def is_dns_subdomain(text: str) -> bool:
    """Tell whether `text` is a DNS-1123 subdomain: labels joined by dots, at most 253 long."""
    return len(text) <= MAX_SUBDOMAIN and _SUBDOMAIN.fullmatch(text) is not None


def is_label_key(text: str) -> bool:
    """Tell whether `text` may be a label's key: a name of at most 63, with or without `prefix/`."""
    prefix, slash, name = text.rpartition("/")
    return (not slash or is_dns_subdomain(prefix)) and bool(name) and is_label_value(name)


def is_label_value(text: str) -> bool:
    """Tell whether `text` may be a label's value: empty or at most 63 long."""
    return not text or (len(text) <= MAX_LABEL and _QUALIFIED_PART.fullmatch(text) is not None)


def problems_of(resource: Resource) -> Iterator[Problem]:
    """Yield what is malformed in the metadata that users write, in field order."""
    yield from _name_problems(resource)
    yield from _label_problems(resource)
    yield from _owner_problems(resource)


def _name_problems(resource: Resource) -> Iterator[Problem]:
    name, namespace = resource.metadata.name, resource.metadata.namespace
    if not name:
        yield Problem("metadata.name", "cannot be empty")
    elif not is_dns_subdomain(name):
        rule = "lower-case letters, digits, dashes and dots, at most 253 characters"
        yield Problem("metadata.name", f"must be a DNS subdomain ({rule}): {name!r}")
    if not namespace:
        yield Problem("metadata.namespace", "cannot be empty")
    elif not is_dns_label(namespace):
        rule = "lower-case letters, digits and dashes, at most 63 characters"
        yield Problem("metadata.namespace", f"must be a DNS label ({rule}): {namespace!r}")


def _label_problems(resource: Resource) -> Iterator[Problem]:
    for key, value in sorted(resource.metadata.labels.items()):
        if not is_label_key(key):
            yield Problem("metadata.labels", f"has a key that is no label name: {key!r}")
        if not is_label_value(value):
            yield Problem(f"metadata.labels[{key}]", f"is no label value: {value!r}")


def _owner_problems(resource: Resource) -> Iterator[Problem]:
    for index, owner in enumerate(resource.metadata.ownerReferences):
        path = f"metadata.ownerReferences[{index}]"
        for field in ("apiVersion", "kind", "name", "uid"):
            if not getattr(owner, field):
                yield Problem(f"{path}.{field}", "cannot be empty")
