"""What a resource is: kinds, metadata, names, selectors, JSON and YAML, differences.

**Invariants:** pure: no I/O, no clock; nothing that was given is dropped silently; what is written
reads back the same. It must not know what any kind is for.
"""

from maserve.resource import names
from maserve.resource.codec import (
    check_readable,
    from_json,
    from_shown_json,
    kind_of_json,
    to_json,
    to_shown_json,
)
from maserve.resource.diff import Difference, list_changed_parts, list_differences
from maserve.resource.jsonform import list_unknown
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
from maserve.resource.manifests import Manifest, from_yaml, to_yaml
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
from maserve.resource.targets import cluster_id, parse_targets, render_targets
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
    "check_readable",
    "from_json",
    "from_shown_json",
    "kind_of_json",
    "to_json",
    "to_shown_json",
    "Manifest",
    "from_yaml",
    "to_yaml",
    "list_unknown",
    "Difference",
    "list_changed_parts",
    "list_differences",
    "cluster_id",
    "parse_targets",
    "render_targets",
    "names",
]
