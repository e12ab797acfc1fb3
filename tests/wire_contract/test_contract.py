"""The built descriptors, printed the way `wire.txt` is written, are `wire.txt`.

Comparing print-outs finds what is missing and what is too much alike. Options of oneofs, presence
and the files of our own are not in that text and have tests of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from google.protobuf import text_format
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)
from google.protobuf.message import Message

from maserve.wire import POOL, find_message, option
from maserve.wire.pool import FILES

CONTRACT = Path(__file__).with_name("wire.txt").read_text()
BLOCKS = dict(
    re.findall(r"^## file (\S+)\n(.*?)(?=^## file |\Z)", CONTRACT, re.MULTILINE | re.DOTALL)
)
EMPTY = {
    "k8s.io/apimachinery/pkg/runtime/generated.proto",
    "k8s.io/apimachinery/pkg/runtime/schema/generated.proto",
}
OURS = {"maserve/v1/serving_ext.proto"}


@pytest.mark.parametrize("name", BLOCKS)
def test_file_is_what_the_contract_says(name: str) -> None:
    file = FileDescriptorProto.FromString(POOL.FindFileByName(name).serialized_pb)
    assert list(_print_file(file)) == _lines(BLOCKS[name])


def test_no_other_files_are_declared() -> None:
    declared = {file.name for file in FILES if not file.name.startswith("google/")}
    assert declared == set(BLOCKS) | EMPTY | OURS


@pytest.mark.parametrize("name", sorted(EMPTY))
def test_files_that_are_only_imported_are_empty(name: str) -> None:
    file = FileDescriptorProto.FromString(POOL.FindFileByName(name).serialized_pb)
    assert file == FileDescriptorProto(name=name, package=file.package)


def test_required_oneofs_are_those_of_the_deployment() -> None:
    required = {
        f"{message.name}.{oneof.name}"
        for file in FILES
        for message in file.message_types_by_name.values()
        for oneof in message.oneofs
        if option(oneof, "michelangelo.api.required")
    }
    assert required == {"DeploymentSpec.target", "DeploymentStrategy.rollout_strategy"}


def test_every_kubernetes_scalar_has_presence_and_no_michelangelo_one_outside_oneofs_has() -> None:
    presence = {
        (file.name.split("/")[0], field.has_presence)
        for file in FILES
        for message in file.message_types_by_name.values()
        for field in message.fields
        if field.message_type is None and not field.is_repeated and not field.containing_oneof
    }
    assert {("k8s.io", True), ("michelangelo", False)} <= presence
    assert not {("k8s.io", False), ("michelangelo", True)} & presence


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


def _print_file(file: FileDescriptorProto) -> Iterator[str]:
    assert not file.options.ListFields()
    yield f"package {file.package}"
    yield from (f"imports {name}" for name in file.dependency)
    for enum in file.enum_type:
        yield from _print_enum(enum, scope="")
    for message in file.message_type:
        yield from _print_message(message, scope="", package=file.package)
    for extension in file.extension:
        extendee = extension.extendee.removeprefix(".")
        kind = _type(extension)
        yield f"extend {extendee} {extension.number} {extension.name} {kind}"
    for service in file.service:
        yield f"service {service.name}"
        for method in service.method:
            assert (method.client_streaming, method.server_streaming) == (False, False)
            takes, gives = (
                _local(t, file.package) for t in (method.input_type, method.output_type)
            )
            yield f"  rpc {method.name} ({takes}) -> {gives}"


def _print_enum(enum: EnumDescriptorProto, *, scope: str) -> Iterator[str]:
    assert not enum.options.ListFields()
    yield f"enum {scope}{enum.name}"
    yield from (f"  {value.number}\t{value.name}" for value in enum.value)


def _print_message(message: DescriptorProto, *, scope: str, package: str) -> Iterator[str]:
    yield f"message {scope}{message.name}"
    for field in message.field:
        yield _print_field(field, message)
    if options := _options(message.options):
        yield f"  options {options}"
    yield from (f"  reserved {span.start}..{span.end - 1}" for span in message.reserved_range)
    assert not message.reserved_name
    for enum in message.enum_type:
        yield from _print_enum(enum, scope=f"{message.name}.")
    for nested in message.nested_type:
        if not nested.options.map_entry:
            yield from _print_message(nested, scope=f"{message.name}.", package=package)


def _print_field(field: FieldDescriptorProto, message: DescriptorProto) -> str:
    assert not field.proto3_optional
    assert not field.HasField("default_value")
    columns = [str(field.number), field.name, _map_type(field, message) or _type(field)]
    if field.HasField("oneof_index"):
        columns.append(f"oneof {message.oneof_decl[field.oneof_index].name}")
    if options := _options(field.options):
        columns.append(f"[{options}]")
    return "  " + "\t".join(columns)


def _type(field: FieldDescriptorProto) -> str:
    scalar = FieldDescriptorProto.Type.Name(field.type).removeprefix("TYPE_").lower()
    name = field.type_name.removeprefix(".") or scalar
    repeated = field.label == FieldDescriptorProto.LABEL_REPEATED
    return f"repeated {name}" if repeated else name


def _map_type(field: FieldDescriptorProto, message: DescriptorProto) -> str | None:
    for entry in message.nested_type:
        if entry.options.map_entry and field.type_name.endswith(f".{message.name}.{entry.name}"):
            # The contract keeps the leading dot of message types here, and only here.
            return (
                f"map<{_type(entry.field[0])},{entry.field[1].type_name or _type(entry.field[1])}>"
            )
    return None


def _local(type_name: str, package: str) -> str:
    return type_name.removeprefix(f".{package}.")


def _options(given: Message) -> str:
    known = find_message(given.DESCRIPTOR.full_name).FromString(given.SerializeToString())
    return text_format.MessageToString(known, as_one_line=True, descriptor_pool=POOL).strip()
