"""The wire contract as Python classes: generated messages, their descriptors and options.

Each module holds one proto package: `v2` and `api` (Michelangelo), `meta`, `core`, `resource` and
`intstr` (Kubernetes), `ext` (our own) and `wkt` (Google's well-known types).

**Invariant:** nothing here touches protobuf's default descriptor pool, so other packages that
declare the same proto names may be imported into the same interpreter. It follows that messages of
`wkt` and of `google.protobuf` do not mix, and that `google.protobuf.json_format` must be given
`descriptor_pool=POOL` wherever an Any may occur.

The Kubernetes messages are proto2: a field that was set to its default differs from one that was
not set, for `HasField` and for `==`.
"""

from maserve.wire import api, core, ext, intstr, meta, resource, v2, wkt
from maserve.wire.options import option
from maserve.wire.pool import POOL, find_message, services

__all__ = [
    "v2",
    "api",
    "meta",
    "core",
    "resource",
    "intstr",
    "ext",
    "wkt",
    "POOL",
    "find_message",
    "services",
    "option",
]
