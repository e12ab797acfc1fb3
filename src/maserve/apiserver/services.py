"""Binds the methods of service descriptors to handlers, for any kind in the same way."""

from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import grpc
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.message import Message

from maserve.apiserver.calls import Calls, answer_of
from maserve.apiserver.handlers import Handlers
from maserve.resource import Kind
from maserve.wire import find_message, services

Method = Callable[[Any], Awaitable[dict[str, Message]]]
"""Takes a request message, returns the fields of the response."""


def kind_handler(kind: Kind, handlers: Handlers[Any], calls: Calls) -> grpc.GenericRpcHandler:
    """Return the gRPC handler of one kind's service."""
    service = find_service(kind.service)
    methods = dict(_methods(kind, handlers))
    return grpc.method_handlers_generic_handler(
        service.full_name,
        {
            method.name: _bind(service, method, methods[method.name], calls)
            for method in service.methods
        },
    )


def find_service(full_name: str) -> ServiceDescriptor:
    """Return a service of our pool. KeyError if there is none of that name."""
    return {service.full_name: service for service in services()}[full_name]


def method_names(*names: str) -> tuple[str, ...]:
    """Return `service/method` of every method of the services called so."""
    return tuple(f"{name}/{method.name}" for name in names for method in find_service(name).methods)


def _methods(kind: Kind, handlers: Handlers[Any]) -> Iterator[tuple[str, Method]]:
    yield f"Create{kind.name}", handlers.create
    yield f"Get{kind.name}", handlers.get
    yield f"Update{kind.name}", handlers.update
    yield f"Delete{kind.name}", handlers.delete
    yield f"Delete{kind.name}Collection", handlers.delete_collection
    yield f"List{kind.name}", handlers.list


def _bind(
    service: ServiceDescriptor, method: MethodDescriptor, run: Method, calls: Calls
) -> "grpc.RpcMethodHandler[bytes, bytes]":
    answer = find_message(method.output_type.full_name)

    async def serve(request: Message) -> Message:
        return answer_of(answer, await run(request))

    request_type = find_message(method.input_type.full_name)
    return calls.unary(f"{service.full_name}/{method.name}", request_type, serve)
