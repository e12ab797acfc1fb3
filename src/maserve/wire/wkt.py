"""Google's well-known types in our pool; those of `google.protobuf` itself do not fit into it."""

from maserve.wire.pool import lazy

__getattr__, __dir__ = lazy("google.protobuf", globals())
