"""`StateSteady`: a completed Deployment is served by every cluster of its server, and stays so.

The stage never changes here. What was lost (an entry, a route, a cluster added later) is made again
in a rollout's order; what an earlier rollout left in a cluster that was away is removed. Requests
that would not be answered although nothing was lost are said, with the reason: replicas come back
by themselves, or a person has to look. So is a Model that was changed under what is served.
"""

from maserve.base.errors import Error
from maserve.base.keys import Key, ModelName
from maserve.conditions import find_condition
from maserve.deployment.keys import current, server_name
from maserve.deployment.stock.discovery import discovery_of
from maserve.deployment.stock.health import Grade
from maserve.deployment.stock.placement import record_placement, snapshot_of
from maserve.deployment.stock.ports import Ports
from maserve.deployment.stock.serve import is_served, serve
from maserve.deployment.stock.service import look_at_service
from maserve.deployment.stock.site import Site, Trouble, site_of
from maserve.deployment.stock.source import find_change
from maserve.deployment.stock.step import Step
from maserve.resource.annotations import PLACEMENT
from maserve.wire import api, v2

TYPE = "StateSteady"

_CHANGED = "ModelChanged"

_SERVING = v2.INFERENCE_SERVER_STATE_SERVING


class StateSteady(Step):
    """Repairs one cluster at a time; one that cannot be repaired keeps no other from it.

    Without a current model, or a server, there is nothing to keep.
    """

    def __init__(self, ports: Ports) -> None:
        super().__init__(TYPE, ports)

    async def look(self, resource: v2.Deployment, previous: api.Condition) -> api.Condition:
        lost = await self._find_lost(resource)
        if lost is not None:
            return self.waiting(previous, lost, "Drifted")
        if not current(resource):
            return self.done(previous)
        health = await look_at_service(self.ports, resource)
        if health.grade is Grade.OUT:
            return self.waiting(previous, health.text, "NotServing")
        if changed := await find_change(self.ports, resource):
            return self.waiting(previous, changed, _CHANGED)
        return self.done(previous)

    async def act(self, resource: v2.Deployment, previous: api.Condition) -> api.Condition:
        if await self._find_lost(resource) is None:
            self._tell_once(resource, previous)
            return previous  # nothing that a repair could mend: what was looked at is said
        server = await self._find_server(resource)
        troubles: list[Trouble] = []
        for target in _targets(server):
            try:
                awaited = await self._repair(resource, site_of(self.ports, resource, target))
            except Trouble as trouble:
                troubles.append(trouble)
                continue
            if awaited:
                return self.waiting(previous, awaited, "Repairing")
        if server is not None:
            record_placement(resource, server, _placed(resource, server))
        await discovery_of(self.ports, resource).add()
        if troubles:
            raise troubles[0]
        return self.waiting(previous, "every cluster serves again", "Repaired")

    def _tell_once(self, deployment: v2.Deployment, found: api.Condition) -> None:
        known = find_condition(deployment.status.conditions, TYPE)
        if found.reason == _CHANGED and (known is None or known.reason != _CHANGED):
            self.ports.recorder.warning(deployment, _CHANGED, found.message)

    async def _repair(self, deployment: v2.Deployment, site: Site) -> str:
        """Take the next step in one cluster; return what is waited for, nothing once it serves.

        Raises `Trouble`, also for a replica that cannot load the model.
        """
        model = current(deployment)
        if await is_served(site, model):
            await _remove_left_over(site, model)
            return ""
        serving = await serve(site, deployment, "TrafficRouteUpsertFailed")
        if serving.failure:
            raise Trouble("Repairing", serving.failure)
        return "" if serving.done else serving.text

    async def _find_lost(self, deployment: v2.Deployment) -> str | None:
        """Return what is not as it should be, as a sentence; None when all is well."""
        model = current(deployment)
        server = await self._find_server(deployment)
        if not model or server is None:
            return None
        for target in _targets(server):
            site = site_of(self.ports, deployment, target)
            if not await is_served(site, model):
                return f"cluster {site.cluster} does not serve {model}"
            if left := await site.old_models(model):
                return f"cluster {site.cluster} still lists {', '.join(left)}"
        is_recorded = all(name in deployment.metadata.annotations for name in PLACEMENT)
        if not is_recorded or _ids(snapshot_of(deployment)) != _ids(_placed(deployment, server)):
            return "the placement record is out of date"
        is_live = await discovery_of(self.ports, deployment).is_live()
        return None if is_live else f"the gateway does not lead to {model}"

    async def _find_server(self, deployment: v2.Deployment) -> v2.InferenceServer | None:
        key = Key(deployment.metadata.namespace, server_name(deployment))
        try:
            server = await self.ports.store.find(v2.InferenceServer, key)
        except Error as error:
            raise Trouble("InferenceServerReadFailed", str(error)) from error
        is_going = server is not None and (
            server.metadata.HasField("deletionTimestamp") or server.spec.decom_spec.decommission
        )
        return None if is_going else server


async def _remove_left_over(site: Site, model: ModelName) -> None:
    for old in await site.old_models(model):
        await site.remove_entry(old, "RemoveModelFromConfigFailed")


def _placed(deployment: v2.Deployment, server: v2.InferenceServer) -> tuple[v2.ClusterTarget, ...]:
    """Return the wanted clusters that serve or were placed on; one that left the spec is gone."""
    known = _ids(snapshot_of(deployment)) | _ids(_targets(server))
    return tuple(target for target in server.spec.cluster_targets if target.cluster_id in known)


def _ids(targets: tuple[v2.ClusterTarget, ...]) -> frozenset[str]:
    return frozenset(target.cluster_id for target in targets)


def _targets(server: v2.InferenceServer | None) -> tuple[v2.ClusterTarget, ...]:
    """Return the wanted clusters that serve, in spec order."""
    if server is None:
        return ()
    states = {row.cluster_id: row.state for row in server.status.cluster_statuses}
    targets = server.spec.cluster_targets
    return tuple(target for target in targets if states.get(target.cluster_id) == _SERVING)
