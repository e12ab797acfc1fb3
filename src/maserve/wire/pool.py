"""The descriptor pool of our own, and message classes made from it.

`descriptors.binpb` is a `google.protobuf.FileDescriptorSet` that `tools/gen_wire.py` writes, every
file after those it imports.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from google.protobuf.descriptor import FileDescriptor, ServiceDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from maserve.wire.enums import Enum

# Options reach these through descriptors; as names of `wkt` they would only crowd it.
_WITHOUT_MODULE = "google/protobuf/descriptor.proto"


def _load() -> tuple[DescriptorPool, tuple[FileDescriptor, ...]]:
    pool = DescriptorPool()
    files = FileDescriptorSet.FromString(Path(__file__).with_name("descriptors.binpb").read_bytes())
    for file in files.file:
        pool.AddSerializedFile(file.SerializeToString())
    return pool, tuple(pool.FindFileByName(file.name) for file in files.file)


POOL, FILES = _load()


def find_message(full_name: str) -> type[Message]:
    """Return the class of a message of our pool; KeyError if there is none of that name."""
    return GetMessageClass(POOL.FindMessageTypeByName(full_name))


def services() -> tuple[ServiceDescriptor, ...]:
    """Return every gRPC service of our pool, in file order."""
    return tuple(service for file in FILES for service in file.services_by_name.values())


def lazy(
    package: str, namespace: dict[str, Any]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a module that offers what `package` declares.

    The names are those of protoc's generated modules: messages, enums, values of top-level enums,
    extensions. Each is made on first use and then kept in `namespace`, the module's globals.
    """
    files = [file for file in FILES if file.package == package and file.name != _WITHOUT_MODULE]

    def get(name: str) -> object:
        for file in files:
            found = _member(file, name, module=namespace["__name__"])
            if found is not None:
                namespace[name] = found
                return found
        raise AttributeError(f"module {namespace['__name__']!r} has no attribute {name!r}")

    def names() -> list[str]:
        return sorted({*namespace, *(name for file in files for name in _names(file))})

    return get, names


def _names(file: FileDescriptor) -> list[str]:
    values = [v.name for enum in file.enum_types_by_name.values() for v in enum.values]
    tables = (file.message_types_by_name, file.enum_types_by_name, file.extensions_by_name)
    return [*(name for table in tables for name in table), *values]


def _member(file: FileDescriptor, name: str, *, module: str) -> object | None:
    if name in file.message_types_by_name:
        message = GetMessageClass(file.message_types_by_name[name])
        message.__module__ = module  # so that it prints and pickles as what it is imported as
        return message
    if name in file.enum_types_by_name:
        return Enum(file.enum_types_by_name[name])
    if name in file.extensions_by_name:
        return file.extensions_by_name[name]
    for enum in file.enum_types_by_name.values():
        if name in enum.values_by_name:
            return enum.values_by_name[name].number
    return None
