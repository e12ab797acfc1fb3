"""The port to which models a server should hold (guide: ModelConfigProvider)."""

from collections.abc import Mapping
from typing import Protocol

from maserve.base.keys import Key, ModelName
from maserve.modelconfig.types import Entry
from maserve.wire import v2


class ModelConfigProvider(Protocol):
    """One model config per server and target cluster.

    The InferenceServer controller creates and deletes it, the Deployment controller changes
    entries. Writes are atomic read-modify-writes. Raises `NotFound` when an entry operation finds
    no config, `Invalid` when the stored list is malformed (it is never overwritten), `Unavailable`
    for what a retry may clear.
    """

    async def create_model_config(
        self,
        server: Key,
        target: v2.ClusterTarget,
        *,
        labels: Mapping[str, str],
        annotations: Mapping[str, str],
    ) -> None:
        """Make an empty config; one that is there already stays as it is."""
        ...

    async def check_model_config_exists(self, server: Key, target: v2.ClusterTarget) -> bool:
        """Tell whether the config is there."""
        ...

    async def delete_model_config(self, server: Key, target: v2.ClusterTarget) -> None:
        """Remove the config with all entries; absent is success."""
        ...

    async def get_models_from_config(
        self, server: Key, target: v2.ClusterTarget
    ) -> tuple[Entry, ...]:
        """Return the entries in their stored order."""
        ...

    async def add_model_to_config(
        self, server: Key, target: v2.ClusterTarget, entry: Entry
    ) -> None:
        """Replace the entry of the same deployment and name in place, else append.

        Equal: no write.
        """
        ...

    async def remove_model_from_config(
        self, server: Key, target: v2.ClusterTarget, deployment_name: str, model: ModelName
    ) -> None:
        """Remove that deployment's own entry; absent is success."""
        ...
