"""The port to one serving framework: its replicas and what they have loaded (guide: Backend)."""

from typing import Protocol

from maserve.backends.types import LoadReport, ServerStatus
from maserve.base.keys import Key, ModelName
from maserve.wire import v2


class Backend(Protocol):
    """Replicas of one framework. Every method is idempotent.

    `target` says which cluster. Raises `Unavailable` for what a retry may clear and `Denied` when
    the cluster refuses us. Implementations announce replica and load-state changes through the
    `Signal` of server keys that they are built with.
    """

    async def create_server(
        self, server: v2.InferenceServer, target: v2.ClusterTarget
    ) -> ServerStatus:
        """Create the server or bring it up to date; returns at once, progress shows in the status.

        A change of template, and of resources where they are enforced, replaces replicas one at a
        time: the new one is ready before an old one drains.
        """
        ...

    async def get_server_status(
        self, server: v2.InferenceServer, target: v2.ClusterTarget
    ) -> ServerStatus:
        """Return the state, compared with what `server` asks for.

        CREATE_PENDING when nothing is there.
        """
        ...

    async def delete_server(self, server: Key, target: v2.ClusterTarget) -> bool:
        """Drain and remove every replica and file; absent is success.

        Returns True once nothing is left, False while replicas are still draining.
        """
        ...

    async def is_healthy(self, server: Key, target: v2.ClusterTarget) -> bool:
        """Tell whether at least one replica is wanted and all wanted replicas are ready."""
        ...

    async def get_model_status(
        self, server: Key, target: v2.ClusterTarget, model: ModelName
    ) -> LoadReport:
        """Return the load state of `model` per replica.

        It is not older than this process's last change of the server's model config. A server that
        does not exist has `wanted` 0 and no rows.
        """
        ...
