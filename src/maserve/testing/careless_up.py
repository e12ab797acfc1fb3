"""`maserve up` with verification switched off: the negative control of the tests under load.

    python -m maserve.testing.careless_up up --data-dir DIR ...

The wiring is the stock list plus one module, as an extension author would write it. Its backend
says of every model that every replica has it, so that routes are flipped before models are loaded;
its probe never asks from outside who answers. Set `modelSync.unloadGrace` to 0 to switch off the
drain as well.
"""

from collections.abc import Sequence
from dataclasses import replace

from maserve.backends import Backend, BackendRegistry, LoadReport, LoadState, ServerStatus
from maserve.base.keys import Key, ModelName
from maserve.cmd.controllermgr import options
from maserve.cmd.main import main
from maserve.cmd.wiring import Module
from maserve.routing import TrafficProbe
from maserve.wire import v2


class BelievingBackend:
    """Believes that every replica has loaded every model; else it is the backend it is given."""

    def __init__(self, inner: Backend) -> None:
        self._inner = inner

    async def create_server(
        self, server: v2.InferenceServer, target: v2.ClusterTarget
    ) -> ServerStatus:
        return await self._inner.create_server(server, target)

    async def get_server_status(
        self, server: v2.InferenceServer, target: v2.ClusterTarget
    ) -> ServerStatus:
        return await self._inner.get_server_status(server, target)

    async def delete_server(self, server: Key, target: v2.ClusterTarget) -> bool:
        return await self._inner.delete_server(server, target)

    async def is_healthy(self, server: Key, target: v2.ClusterTarget) -> bool:
        return await self._inner.is_healthy(server, target)

    async def get_model_status(
        self, server: Key, target: v2.ClusterTarget, model: ModelName
    ) -> LoadReport:
        """Ask, and do not listen to the answer."""
        report = await self._inner.get_model_status(server, target, model)
        rows = tuple(replace(row, state=LoadState.READY, reason="") for row in report.rows)
        return replace(report, rows=rows)


class BlindProbe:
    """Never asks who answers."""

    async def find_answering_model(
        self, _target: v2.ClusterTarget | None, _server: Key, _deployment: str
    ) -> str | None:
        return None


def believing(backends: BackendRegistry) -> BackendRegistry:
    return BackendRegistry(
        {kind: BelievingBackend(backends.get(kind)) for kind in backends.types()}
    )


def blind(_probe: TrafficProbe) -> TrafficProbe:
    return BlindProbe()


def careless_options() -> Sequence[Module]:
    """Return the stock wiring with a backend that believes and a blind probe."""
    return (*options(), Module(name="no verification", decorate=(believing, blind)))


if __name__ == "__main__":
    main(careless_options)
