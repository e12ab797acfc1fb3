"""One Deployment in one cluster.

What is configured, loaded and routed there, and how to change it.
"""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from maserve.backends import Backend, LoadReport, ReplicaLoad, ReplicaStatus, summary
from maserve.base.errors import Denied, Error, NotFound, Unsupported
from maserve.base.keys import ClusterId, Key, ModelName, ReplicaName
from maserve.deployment.stock.placement import Place, serving_place
from maserve.deployment.stock.ports import Ports
from maserve.deployment.stock.server import explain_server
from maserve.modelconfig import Entry, Phase, find_entry, promoted
from maserve.resource import names
from maserve.routing import MatchType, RewriteType, RouteId, Rule
from maserve.wire import v2

_T = TypeVar("_T")


class Trouble(Error):
    """Something a step needs did not work. `permanent` tells that no retry clears it."""

    def __init__(self, reason: str, text: str, *, permanent: bool = False) -> None:
        super().__init__(reason, text)
        self.reason = reason
        self.text = text
        self.permanent = permanent

    def __str__(self) -> str:
        return f"{self.reason}: {self.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Reads and changes one cluster for one Deployment. Every method raises `Trouble` only."""

    ports: Ports
    server: Key
    target: v2.ClusterTarget
    deployment_name: str
    backend_type: v2.BackendType

    @property
    def cluster(self) -> ClusterId:
        return ClusterId(self.target.cluster_id)

    async def entries(self) -> tuple[Entry, ...]:
        """Return this Deployment's own entries."""
        listed = await self._list_entries()
        return tuple(entry for entry in listed if entry.deployment_name == self.deployment_name)

    async def entries_left(self) -> tuple[Entry, ...]:
        """Return the own entries that there still are: a config that is gone lists nothing."""
        checking = self.ports.model_config.check_model_config_exists(self.server, self.target)
        is_there = await _or_trouble(checking, "ModelConfigReadFailed")
        return await self.entries() if is_there else ()

    async def find_entry(self, model: ModelName) -> Entry | None:
        return find_entry(await self.entries(), self.deployment_name, model)

    async def old_models(self, kept: ModelName) -> tuple[ModelName, ...]:
        """Return the models this Deployment still lists besides `kept`, in the list's order."""
        return tuple(entry.name for entry in await self.entries_left() if entry.name != kept)

    async def put_entry(
        self, model: ModelName, storage_path: str, phase: Phase, replica: str = ""
    ) -> None:
        """Add or replace this Deployment's entry of the model."""
        entry = Entry(
            name=model,
            storage_path=storage_path,
            deployment_name=self.deployment_name,
            phase=phase,
            canary_pod=ReplicaName(replica),
        )
        await self._put(entry, "AddModelToConfigFailed")

    async def promote(self, entry: Entry) -> None:
        """Make the model a readiness requirement (phase serving)."""
        await self._put(promoted(entry), "PromoteModelFailed")

    async def remove_entry(self, model: ModelName, reason: str) -> None:
        """Remove this Deployment's entry; a config that is gone holds nothing."""
        config = self.ports.model_config
        removing = config.remove_model_from_config(
            self.server, self.target, self.deployment_name, model
        )
        await _or_trouble(_absent_is_fine(removing), reason)

    async def load(self, model: ModelName) -> LoadReport:
        """Return the model's load state on every replica."""
        asking = self._backend().get_model_status(self.server, self.target, model)
        return await _or_trouble(asking, "ModelStatusCheckFailed")

    async def replicas(self, server: v2.InferenceServer) -> tuple[ReplicaStatus, ...]:
        """Return the replicas of this cluster; none where the backend does not tell of them."""
        asking = self._backend().get_server_status(server, self.target)
        return (await _or_trouble(asking, "StatusCheckFailed")).replicas

    def describe_load(self, report: LoadReport) -> str:
        """Say how far the model is on the replicas."""
        return f"model {report.model} in cluster {self.cluster}: {summary(report)}"

    def describe_failure(self, model: ModelName, row: ReplicaLoad) -> str:
        """Say on which replica the model failed to load, and why."""
        where = f"cluster {self.cluster} on replica {row.replica}"
        return f"model {model} failed to load in {where}: {row.reason}"

    async def is_routed(self, model: ModelName) -> bool:
        """Tell whether the data plane has acknowledged that traffic goes to the model."""
        route, rule = self._route(), self._rule(model)
        return await _or_trouble(self._is_live_with(route, rule), "TrafficRouteStatusCheckFailed")

    async def find_routed(self, models: Sequence[ModelName]) -> ModelName | None:
        """Return the one of `models` that traffic goes to, None when it goes to none of them.

        Raises `Trouble` while the data plane has not acknowledged the routes as they are stored.
        """
        listing = self.ports.routes.list_rules(self.target, self._route())
        rules = await _or_trouble(listing, "TrafficRouteStatusCheckFailed")
        found = next((model for model in models if self._rule(model) in rules), None)
        if found is not None and not await self.is_routed(found):
            text = f"cluster {self.cluster} has not taken up its routes yet"
            raise Trouble("TrafficRouteNotReady", text)
        return found

    async def find_answering_model(self) -> str | None:
        """Return the model that answers here, asked from outside; None when that cannot be told."""
        return await _or_trouble(
            self.ports.probe.find_answering_model(self.target, self.server, self.deployment_name),
            "TrafficProbeFailed",
        )

    async def has_rule(self) -> bool:
        """Tell whether any traffic rule of this Deployment is there."""
        listing = self.ports.routes.list_rules(self.target, self._route())
        rules = await _or_trouble(listing, "TrafficRouteStatusCheckFailed")
        return any(rule.match_path == self._path() for rule in rules)

    async def route_to(self, model: ModelName, reason: str) -> None:
        """Point the cluster's traffic at the model; returns once that was acknowledged."""
        adding = self.ports.routes.add_rules(self.target, self._route(), self._rule(model))
        await _or_trouble(adding, reason)

    async def unroute(self, reason: str) -> None:
        """Take this Deployment's traffic rule out of the cluster; absent is success."""
        removing = self.ports.routes.remove_rules(self.target, self._route(), self._path())
        await _or_trouble(removing, reason)

    async def _put(self, entry: Entry, reason: str) -> None:
        """Write an entry unless its name means another model here: the first one listed keeps it.

        Checked at each step, so that of two that came at the same moment one is refused later.
        """
        if (other := _find_namesake(await self._list_entries(), entry)) is not None:
            text = (
                f"Deployment {other.deployment_name} has a model {entry.name} from "
                f"{other.storage_path} in cluster {self.cluster} already, and a replica holds one "
                f"model of a name: give the one from {entry.storage_path} another name"
            )
            raise Trouble("ModelNameTaken", text, permanent=True)
        adding = self.ports.model_config.add_model_to_config(self.server, self.target, entry)
        await _or_trouble(adding, reason)

    async def _list_entries(self) -> tuple[Entry, ...]:
        try:
            return await self.ports.model_config.get_models_from_config(self.server, self.target)
        except NotFound as error:  # the server makes it, or has taken it away: it knows why
            text = await explain_server(self.ports, self.server)
            raise Trouble("InferenceServerNotReady", text) from error
        except Error as error:
            raise _trouble_of(error, "ModelConfigReadFailed") from error

    def _backend(self) -> Backend:
        """Find the backend only where it is needed: without one a cleanup still works."""
        try:
            return self.ports.backends.get(self.backend_type)
        except Unsupported as error:
            raise Trouble("BackendUnavailable", str(error), permanent=True) from error

    async def _is_live_with(self, route: RouteId, rule: Rule) -> bool:
        rules = await self.ports.routes.list_rules(self.target, route)
        return rule in rules and await self.ports.routes.is_live(self.target, route)

    def _route(self) -> RouteId:
        return RouteId.traffic(self.server, self.cluster)

    def _path(self) -> str:
        return names.traffic_path(self.server.name, self.deployment_name)

    def _rule(self, model: ModelName) -> Rule:
        return Rule(
            match_path=self._path(),
            match_type=MatchType.PREFIX,
            rewrite_path=names.model_path(model),
            rewrite_type=RewriteType.PREFIX,
            backend=names.inference_service(self.server.name),
        )


def site_of(
    ports: Ports, deployment: v2.Deployment, target: v2.ClusterTarget, place: Place | None = None
) -> Site:
    """Build the site of a Deployment in one cluster of a place, the serving one by default."""
    where = place or serving_place(deployment)
    return Site(
        ports=ports,
        server=where.server,
        target=target,
        deployment_name=deployment.metadata.name,
        backend_type=where.backend_type,
    )


def _find_namesake(listed: tuple[Entry, ...], entry: Entry) -> Entry | None:
    """Return the entry before this one, or before its place at the end, of another model."""
    for other in listed:
        if other.name == entry.name and other.deployment_name == entry.deployment_name:
            return None
        if other.name == entry.name and other.storage_path != entry.storage_path:
            return other
    return None


async def _or_trouble(work: Awaitable[_T], reason: str) -> _T:
    try:
        return await work
    except Error as error:
        raise _trouble_of(error, reason) from error


def _trouble_of(error: Error, reason: str) -> Trouble:
    if isinstance(error, Denied):
        return Trouble("ProxyDenied", str(error), permanent=True)
    return Trouble(reason, str(error))


async def _absent_is_fine(work: Awaitable[None]) -> None:
    try:
        await work
    except NotFound:
        return
