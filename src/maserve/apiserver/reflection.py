"""Server reflection, v1alpha and v1, over a pool of everything that is served.

v1 is v1alpha under another name: the messages have the same fields, so one servicer answers both.
"""

from collections.abc import Iterable

import grpc
from google.protobuf.descriptor import FileDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection, reflection_pb2

from maserve.wire import services

V1 = "grpc.reflection.v1.ServerReflection"
V1ALPHA = reflection.SERVICE_NAME

_METHOD = "ServerReflectionInfo"


def reflection_handlers(service_names: Iterable[str]) -> tuple[grpc.GenericRpcHandler, ...]:
    """Return the handlers of both versions; they list `service_names` and themselves."""
    names = (*service_names, V1, V1ALPHA)
    servicer = reflection.aio.ReflectionServicer(names, pool=_served_pool())
    method = grpc.stream_stream_rpc_method_handler(
        servicer.ServerReflectionInfo,
        request_deserializer=reflection_pb2.ServerReflectionRequest.FromString,
        response_serializer=reflection_pb2.ServerReflectionResponse.SerializeToString,
    )
    return tuple(
        grpc.method_handlers_generic_handler(version, {_METHOD: method})
        for version in (V1, V1ALPHA)
    )


def _served_pool() -> DescriptorPool:
    """Return our pool's files and those of health and reflection, which are of another pool."""
    pool = DescriptorPool()
    added: set[str] = set()
    for service in services():
        _add(pool, service.file, added)
    for file in (health_pb2.DESCRIPTOR, reflection_pb2.DESCRIPTOR):
        _add(pool, file, added)
    pool.Add(_v1_file())
    return pool


def _add(pool: DescriptorPool, file: FileDescriptor, added: set[str]) -> None:
    if file.name in added:
        return
    added.add(file.name)
    for dependency in file.dependencies:
        _add(pool, dependency, added)
    pool.AddSerializedFile(file.serialized_pb)


def _v1_file() -> FileDescriptorProto:
    """Return the v1alpha file under the names of v1."""
    file = FileDescriptorProto.FromString(reflection_pb2.DESCRIPTOR.serialized_pb)
    file.name = "grpc/reflection/v1/reflection.proto"
    file.package = "grpc.reflection.v1"
    for message in file.message_type:
        for field in (field for field in message.field if field.HasField("type_name")):
            field.type_name = field.type_name.replace(".v1alpha.", ".v1.")
    for method in file.service[0].method:
        method.input_type = method.input_type.replace(".v1alpha.", ".v1.")
        method.output_type = method.output_type.replace(".v1alpha.", ".v1.")
    return file
