"""A ModelConfigProvider in memory."""

from collections.abc import Callable, Mapping

from maserve.base.errors import NotFound
from maserve.base.keys import ClusterId, Key, ModelName
from maserve.modelconfig import Entry, with_entry, without_entry
from maserve.testing.faults import Faults
from maserve.wire import v2

Entries = tuple[Entry, ...]


class FakeModelConfigProvider(Faults):
    """Keeps the lists. `calls` lists every write; `changed` hears of those that changed something.

    `broken` holds what reading and editing a list raises, as for a file that is malformed.
    """

    def __init__(self, changed: Callable[[Key, ClusterId], None] = lambda _key, _id: None) -> None:
        super().__init__()
        self.changed = changed
        self.broken: dict[tuple[Key, ClusterId], Exception] = {}
        self._lists: dict[tuple[Key, ClusterId], Entries] = {}

    def find_entries(self, server: Key, cluster: ClusterId) -> Entries | None:
        """Return a list, None when there is none; what a sidecar sees, no call of the port."""
        return self._lists.get((server, cluster))

    async def create_model_config(
        self,
        server: Key,
        target: v2.ClusterTarget,
        *,
        labels: Mapping[str, str],  # noqa: ARG002 - kept by none of the callers
        annotations: Mapping[str, str],  # noqa: ARG002
    ) -> None:
        self.write("create_model_config", str(server), target.cluster_id)
        self._replace(server, target, self._lists.get(_place(server, target), ()))

    async def check_model_config_exists(self, server: Key, target: v2.ClusterTarget) -> bool:
        self.read("check_model_config_exists")
        return _place(server, target) in self._lists

    async def delete_model_config(self, server: Key, target: v2.ClusterTarget) -> None:
        self.write("delete_model_config", str(server), target.cluster_id)
        if self._lists.pop(_place(server, target), None) is not None:
            self.changed(*_place(server, target))

    async def get_models_from_config(self, server: Key, target: v2.ClusterTarget) -> Entries:
        self.read("get_models_from_config")
        return self._get(server, target)

    async def add_model_to_config(
        self, server: Key, target: v2.ClusterTarget, entry: Entry
    ) -> None:
        what = (entry.deployment_name, entry.name, entry.phase)
        self.write("add_model_to_config", str(server), target.cluster_id, *what)
        self._replace(server, target, with_entry(self._get(server, target), entry))

    async def remove_model_from_config(
        self, server: Key, target: v2.ClusterTarget, deployment_name: str, model: ModelName
    ) -> None:
        what = (deployment_name, model)
        self.write("remove_model_from_config", str(server), target.cluster_id, *what)
        entries = without_entry(self._get(server, target), deployment_name, model)
        self._replace(server, target, entries)

    def _get(self, server: Key, target: v2.ClusterTarget) -> Entries:
        place = _place(server, target)
        if place in self.broken:
            raise self.broken[place]
        if place not in self._lists:
            raise NotFound("model config", server)
        return self._lists[place]

    def _replace(self, server: Key, target: v2.ClusterTarget, entries: Entries) -> None:
        place = _place(server, target)
        is_changed = self._lists.get(place) != entries
        self._lists[place] = entries
        if is_changed:
            self.changed(*place)


def _place(server: Key, target: v2.ClusterTarget) -> tuple[Key, ClusterId]:
    return server, ClusterId(target.cluster_id)
