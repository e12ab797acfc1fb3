"""Messages and enums of `michelangelo.api.v2`: resources and their requests."""

from maserve.wire.pool import lazy

__getattr__, __dir__ = lazy("michelangelo.api.v2", globals())
