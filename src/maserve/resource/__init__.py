"""What a resource is: kinds, names, metadata, selectors.

Invariant: pure; no I/O, no clock.
"""

from maserve.resource.kinds import (
    API_VERSION,
    GROUP,
    KINDS,
    VERSION,
    Kind,
    R,
    Resource,
    get_kind,
    kind_of,
)
from maserve.resource.metadata import (
    add_finalizer,
    clone,
    decode,
    deletion_time,
    has_finalizer,
    is_deleting,
    key_of,
    remove_finalizer,
    set_annotation,
)
from maserve.resource.selectors import (
    FieldSelector,
    LabelSelector,
    parse_fields,
    parse_labels,
)
from maserve.resource.wellformed import (
    is_dns_label,
    is_dns_subdomain,
    is_label_key,
    is_label_value,
    problems_of,
)

__all__ = [
    "API_VERSION",
    "GROUP",
    "VERSION",
    "KINDS",
    "Kind",
    "R",
    "Resource",
    "get_kind",
    "kind_of",
    "add_finalizer",
    "clone",
    "decode",
    "deletion_time",
    "has_finalizer",
    "is_deleting",
    "key_of",
    "remove_finalizer",
    "set_annotation",
    "FieldSelector",
    "LabelSelector",
    "parse_fields",
    "parse_labels",
    "is_dns_label",
    "is_dns_subdomain",
    "is_label_key",
    "is_label_value",
    "problems_of",
]
