"""Reading custom options such as `michelangelo.api.validation` from descriptors of our pool."""

from __future__ import annotations

from typing import Any, Protocol

from google.protobuf.message import Message

from maserve.wire.pool import POOL, find_message


class Described(Protocol):
    """Any descriptor: of a file, message, field, oneof, enum, service or method."""

    def GetOptions(self) -> Message:  # noqa: N802 (protobuf's spelling)
        """Return the options, of the class that the default pool has for them."""
        ...


def option(descriptor: Described, name: str) -> Any:
    """Return the value of the option `name`, its extension's full name, or None if it is not set.

    A repeated option is a tuple, empty if it is not set. The value must not be changed. KeyError
    if our pool has no such extension, or has it for another kind of descriptor.
    """
    extension: Any = POOL.FindExtensionByName(name)
    given = descriptor.GetOptions()
    # `given` is of the default pool, which knows no extension of ours and keeps them as unknown
    # fields. The same bytes read by our pool's class of the same name have them.
    options = find_message(given.DESCRIPTOR.full_name).FromString(given.SerializeToString())
    if extension.is_repeated:
        return tuple(options.Extensions[extension])
    return options.Extensions[extension] if options.HasExtension(extension) else None
