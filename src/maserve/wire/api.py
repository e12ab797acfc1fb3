"""Messages, enums and option extensions of `michelangelo.api`, shared by all resources."""

from maserve.wire.pool import lazy

__getattr__, __dir__ = lazy("michelangelo.api", globals())
