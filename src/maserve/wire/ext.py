"""Messages and enums of `maserve.v1`, our own additions to the API."""

from maserve.wire.pool import lazy

__getattr__, __dir__ = lazy("maserve.v1", globals())
