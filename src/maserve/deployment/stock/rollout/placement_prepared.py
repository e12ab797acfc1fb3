"""`PlacementPrepared`: the clusters of this rollout are recorded, and stay so until it ends."""

from maserve.base.errors import Error, Unsupported
from maserve.base.keys import Key
from maserve.conditions import read_progress
from maserve.deployment.places import candidate_server
from maserve.deployment.stock.placement import candidate_place, record_placement
from maserve.deployment.stock.ports import Ports
from maserve.deployment.stock.server import describe_server
from maserve.deployment.stock.site import Trouble
from maserve.deployment.stock.sites import list_placed
from maserve.deployment.stock.step import Step
from maserve.deployment.stock.strategy import ignored_fields
from maserve.resource.metadata import key_of
from maserve.wire import api, v2

_SERVING = v2.INFERENCE_SERVER_STATE_SERVING
_FAILED = v2.INFERENCE_SERVER_STATE_FAILED


class PlacementPrepared(Step):
    """Takes a new snapshot at the start of every rollout and freezes it (serving guide, Placement).

    A snapshot does not count once the server has none of its clusters any more: a new one is taken.

    Clusters that are still coming up are waited for within the budget, so that a Deployment applied
    together with its server reaches every cluster; then those that serve are taken.
    """

    timeout_reason = "NoClusterServing"

    def __init__(self, ports: Ports) -> None:
        super().__init__("PlacementPrepared", ports)
        self.budget_s = ports.settings.model_load_timeout_s

    async def look(self, resource: v2.Deployment, previous: api.Condition) -> api.Condition:
        if read_progress(previous).done and await self._is_recorded(resource):
            return self.done(previous)
        return self.waiting(previous, "no clusters recorded yet", "SnapshotMissing")

    async def _is_recorded(self, resource: v2.Deployment) -> bool:
        return bool(await list_placed(self.ports, resource, candidate_place(resource)))

    async def act(self, resource: v2.Deployment, previous: api.Condition) -> api.Condition:
        server = await self._read_server(resource)
        self._check_backend(server)
        states = {row.cluster_id: row.state for row in server.status.cluster_statuses}
        targets = tuple(server.spec.cluster_targets)
        serving = tuple(t for t in targets if states.get(t.cluster_id) == _SERVING)
        coming = [
            t.cluster_id for t in targets if states.get(t.cluster_id) not in (_SERVING, _FAILED)
        ]
        is_patient = self.elapsed_s(previous) < (self.budget_s or 0.0) / 2
        if not serving or (coming and is_patient):
            return self.waiting(previous, _describe_waiting(server, coming), "NoClusterServing")
        record_placement(resource, server, serving)
        self._say_what_is_ignored(resource)
        self.latch(previous)
        text = f"recorded {', '.join(t.cluster_id for t in serving)}"
        return self.waiting(previous, text, "AnnotationWritten")

    def _check_backend(self, server: v2.InferenceServer) -> None:
        """Refuse a backend that nobody here has, before it is recorded."""
        try:
            self.ports.backends.get(server.spec.backend_type or v2.BACKEND_TYPE_TRITON)
        except Unsupported as error:
            text = f"InferenceServer {key_of(server)}: {error}"
            raise Trouble("BackendUnavailable", text, permanent=True) from error

    def _say_what_is_ignored(self, deployment: v2.Deployment) -> None:
        """Tell a user, once a rollout, which wishes have no effect (behaviour 15, 21)."""
        ignored = ignored_fields(deployment)
        if ignored:
            text = f"no effect on an inference server: {', '.join(ignored)}"
            self.ports.recorder.warning(deployment, "FieldsIgnored", text)

    async def _read_server(self, deployment: v2.Deployment) -> v2.InferenceServer:
        key = Key(deployment.metadata.namespace, candidate_server(deployment))
        try:
            return await self.ports.store.get(v2.InferenceServer, key)
        except Error as error:
            raise Trouble("InferenceServerNotFound", str(error)) from error


def _describe_waiting(server: v2.InferenceServer, coming: list[str]) -> str:
    """Say which clusters are waited for, and what the server says of them."""
    none = "every one has failed" if server.spec.cluster_targets else "it names none"
    clusters = ", ".join(coming) or none
    return f"waiting for clusters to serve: {clusters} ({describe_server(server)})"
