"""Which replicas of one server the data plane sends traffic to."""

import asyncio
from collections.abc import Callable

import structlog

from maserve.backends.triton.local.engine import ReplicaEndpoints
from maserve.base.backoff import Backoff
from maserve.base.clock import Clock
from maserve.base.errors import Unavailable
from maserve.base.keys import ClusterId, Key
from maserve.resource.names import inference_service

Address = tuple[str, int]

log = structlog.get_logger()


class Admission:
    """Publishes the wanted addresses, one publication at a time, until the data plane agrees."""

    def __init__(
        self,
        cluster: ClusterId,
        key: Key,
        *,
        endpoints: ReplicaEndpoints,
        clock: Clock,
        on_settled: Callable[[], None],
    ) -> None:
        self._on_settled = on_settled
        self._cluster = cluster
        self._key = key
        self._endpoints = endpoints
        self._clock = clock
        self._wanted: tuple[Address, ...] = ()
        self._acknowledged: tuple[Address, ...] | None = None  # None: nobody knows
        self._wake = asyncio.Event()
        self._news = asyncio.Event()
        self._backoff = Backoff(initial_s=0.1, limit_s=5.0)
        self.problem = ""
        """Why the data plane has not taken what is wanted, empty while nothing failed."""

    def want(self, addresses: tuple[Address, ...]) -> None:
        """Say which addresses should get traffic from now on."""
        self._wanted = tuple(sorted(addresses))
        self._wake.set()

    async def run(self) -> None:
        """Publish until cancelled; the first publication is made even if it is empty."""
        failures = 0
        while True:
            self._wake.clear()
            if self.is_settled:
                await self._wake.wait()
                continue
            failures = 0 if await self._publish(self._wanted, failures) else failures + 1
            if failures:
                await self._clock.sleep(self._backoff.delay_s(failures))

    @property
    def is_settled(self) -> bool:
        """Tell whether the data plane has acknowledged what is wanted."""
        return self._wanted == self._acknowledged

    async def left(self, address: Address, *, timeout_s: float) -> bool:
        """Return True once the data plane does not use `address`, False after the timeout."""
        try:
            async with asyncio.timeout(timeout_s):
                while self._acknowledged is None or address in self._acknowledged:
                    await self._news.wait()
        except TimeoutError:
            log.warning("data plane does not let go", key=str(self._key), cluster=self._cluster)
            return False
        return True

    async def settled(self, *, timeout_s: float) -> bool:
        """Return True once the data plane has what is wanted, False after the timeout."""
        try:
            async with asyncio.timeout(timeout_s):
                while not self.is_settled:
                    await self._news.wait()
        except TimeoutError:
            return False
        return True

    async def remove(self, *, timeout_s: float) -> None:
        """Remove the service once the data plane has let go of all its replicas.

        Raises `Unavailable` when it does not in time.
        """
        service = inference_service(self._key.name)
        if not await self.settled(timeout_s=timeout_s):
            raise Unavailable(f"the data plane has not let go of {service}: {self.problem}")
        await self._endpoints.remove_service(self._cluster, self._key.namespace, service)

    async def _publish(self, addresses: tuple[Address, ...], failures: int) -> bool:
        self._acknowledged = None
        service = inference_service(self._key.name)
        try:
            await self._endpoints.set_endpoints(
                self._cluster, self._key.namespace, service, addresses
            )
        except Unavailable as error:
            if not failures:
                log.warning("endpoints not set", service=service, error=str(error))
            self.problem = str(error)
            return False
        self.problem = ""
        self._acknowledged = addresses
        news, self._news = self._news, asyncio.Event()
        news.set()
        self._on_settled()
        log.info("endpoints set", service=service, cluster=self._cluster, replicas=len(addresses))
        return True
