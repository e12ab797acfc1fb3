"""The API server as a whole: services, health, reflection, and where it listens."""

import asyncio
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, Self

import grpc
import structlog
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from prometheus_client import CollectorRegistry

from maserve.apiserver.address import in_use, resolve_address
from maserve.apiserver.calls import Calls
from maserve.apiserver.extension import EXT_SERVICE, Inspector, ServingExt
from maserve.apiserver.handlers import Handlers
from maserve.apiserver.hooks import Extensions
from maserve.apiserver.metrics import ApiMetrics
from maserve.apiserver.reflection import reflection_handlers
from maserve.apiserver.services import kind_handler, method_names
from maserve.apiserver.settings import ApiSettings
from maserve.base.clock import Clock
from maserve.resource import KINDS
from maserve.store import Store

_log = structlog.get_logger()


class ApiServer:
    """Serves every kind over a store; listens between `async with`.

    Entering raises `Invalid` for an address that may not be listened on and `Unavailable` for one
    that is taken.
    """

    def __init__(
        self,
        settings: ApiSettings,
        store: Store,
        *,
        inspector: Inspector,
        extensions: Extensions,
        clock: Clock,
        registry: CollectorRegistry,
    ) -> None:
        self._settings = settings
        self._store = store
        self._inspector = inspector
        self._extensions = extensions
        self._calls = Calls(clock=clock, metrics=ApiMetrics(registry))
        self._clock = clock
        self._exit = AsyncExitStack()
        self._addresses: tuple[str, ...] = ()

    @property
    def address(self) -> str:
        """Where clients connect to, with the port that was chosen for port 0."""
        return self._addresses[0]

    async def __aenter__(self) -> Self:
        wanted = await resolve_address(self._settings.address)
        server = await self._build()
        self._addresses = _bind(server, wanted)
        await server.start()
        self._exit.push_async_callback(server.stop, self._settings.stop_s)
        _log.info("api server listens", address=self.address)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._exit.aclose()

    async def serve(self) -> None:
        """Stay until cancelled; calls are served from entering to leaving anyway."""
        await asyncio.Event().wait()

    async def _build(self) -> grpc.aio.Server:
        names = [kind.service for kind in KINDS] + [EXT_SERVICE]
        self._calls.metrics.prepare(method_names(*names))
        server = grpc.aio.server(
            options=_options(self._settings), maximum_concurrent_rpcs=self._settings.max_calls
        )
        for kind in KINDS:
            handlers: Handlers[Any] = Handlers(
                kind, self._store, clock=self._clock, extensions=self._extensions
            )
            server.add_generic_rpc_handlers((kind_handler(kind, handlers, self._calls),))
        own = ServingExt(self._store, self._inspector).handler(self._calls)
        reflected = reflection_handlers([*names, health.SERVICE_NAME])
        server.add_generic_rpc_handlers((own, *reflected))
        health_pb2_grpc.add_HealthServicer_to_server(await _healthy(names), server)
        return server


def _options(settings: ApiSettings) -> list[tuple[str, int]]:
    return [
        ("grpc.max_receive_message_length", settings.max_request_bytes),
        ("grpc.max_send_message_length", -1),
        ("grpc.so_reuseport", 0),  # else a second server would share the port in silence
    ]


async def _healthy(names: list[str]) -> health.aio.HealthServicer:
    servicer = health.aio.HealthServicer()
    for name in ["", *names]:
        await servicer.set(name, health_pb2.HealthCheckResponse.SERVING)
    return servicer


def _bind(server: grpc.aio.Server, addresses: tuple[str, ...]) -> tuple[str, ...]:
    """Bind every address; a port 0 is chosen once and then the same for all of them."""
    bound: list[str] = []
    for address in addresses:
        is_unix = address.startswith("unix:")
        host, _, port = address.rpartition(":")
        if port == "0" and bound:
            address = f"{host}:{bound[0].rpartition(':')[2]}"  # noqa: PLW2901
        try:
            chosen = server.add_insecure_port(address)
        except RuntimeError as error:
            raise in_use(address) from error
        bound.append(address if is_unix else f"{host}:{chosen}")
    return tuple(bound)
