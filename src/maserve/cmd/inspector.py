"""Answers "why does it not move": an object with its events, replicas and routes; and logs."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Protocol

from maserve.backends import BackendRegistry, ReplicaStatus
from maserve.base.clock import Clock
from maserve.base.errors import Error, Unavailable
from maserve.base.keys import ClusterId, Key, ModelName, ReplicaName
from maserve.cmd.replica_logs import ReplicaLogs
from maserve.deployment import working_server
from maserve.endpoints import Publisher
from maserve.host import DataFolder
from maserve.inferenceserver import known_targets
from maserve.modelconfig import Entry, ModelConfigProvider
from maserve.resource import Kind, Resource, key_of
from maserve.routing import Manager as RoutingManager
from maserve.routing import RouteId
from maserve.store import EventLog, EventRow, Store
from maserve.wire import ext, v2

FOLLOW_S = 0.2


class Replicas(Protocol):
    """Who knows the replicas of this machine."""

    def views(self, server: Key, cluster: ClusterId) -> tuple[ReplicaStatus, ...]:
        """Return every replica for people, draining ones included; empty when there is none."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalInspector:
    """Looks into the processes and files of this machine."""

    store: Store
    events: EventLog
    backends: BackendRegistry
    replicas: Replicas
    model_config: ModelConfigProvider
    routes: RoutingManager
    publisher: Publisher
    folder: DataFolder
    clock: Clock

    async def describe(self, kind: Kind, key: Key) -> ext.DescribeResponse:
        """See `apiserver.Inspector.describe`."""
        resource = await self.store.get(kind.message, key)
        answer = ext.DescribeResponse()
        answer.object.Pack(resource)
        rows = await self.events.list(kind.name, key)
        answer.events.extend(_event(row) for row in rows if row.uid == resource.metadata.uid)
        server = await self._server_of(resource)
        if server is not None:
            await self._describe_server(answer, server, _only(resource))
        return answer

    async def logs(self, request: ext.LogsRequest) -> AsyncIterator[ext.LogsResponse]:
        """See `apiserver.Inspector.logs`."""
        key = Key(request.namespace, request.inference_server)
        server = await self.store.get(v2.InferenceServer, key)
        logs = ReplicaLogs(self.folder, server, request)
        for line in logs.last():
            yield line
        while request.follow:
            await self.clock.sleep(FOLLOW_S)
            for line in logs.new():
                yield line

    async def _server_of(self, resource: Resource) -> v2.InferenceServer | None:
        if isinstance(resource, v2.InferenceServer):
            return resource
        if not isinstance(resource, v2.Deployment):
            return None
        key = Key(resource.metadata.namespace, working_server(resource))
        return await self.store.find(v2.InferenceServer, key)

    async def _describe_server(
        self, answer: ext.DescribeResponse, server: v2.InferenceServer, deployment: str
    ) -> None:
        for target in known_targets(server):
            view = ext.ClusterView(cluster_id=target.cluster_id)
            try:
                await self._describe_cluster(view, server, target, deployment)
            except Error as error:
                view.error = str(error)
            answer.clusters.append(view)
        for route, where in _routes(server):
            await self._describe_route(answer, route, where, deployment)

    async def _describe_cluster(
        self,
        view: ext.ClusterView,
        server: v2.InferenceServer,
        target: v2.ClusterTarget,
        deployment: str,
    ) -> None:
        """Fill in `view` as far as it can be known: whatever fails, the replicas are shown."""
        seen = self.replicas.views(key_of(server), ClusterId(target.cluster_id))
        replicas = {status.name: _replica(status) for status in seen}
        try:
            for status in await self._describe_state(view, server, target):
                replicas.setdefault(status.name, _replica(status))
            entries = await self._entries(server, target)
            view.entries.extend(
                _entry(entry) for entry in entries if deployment in ("", entry.deployment_name)
            )
            for model in dict.fromkeys(entry.name for entry in entries):
                await self._describe_loads(replicas, server, target, model)
        finally:
            view.replicas.extend(replicas[name] for name in sorted(replicas))

    async def _describe_state(
        self, view: ext.ClusterView, server: v2.InferenceServer, target: v2.ClusterTarget
    ) -> tuple[ReplicaStatus, ...]:
        """Return the replicas that the backend tells of: it need not be the one on this machine."""
        status = await self.backends.get(server.spec.backend_type).get_server_status(server, target)
        view.state, view.message = str(status.state), status.message
        endpoints = await self.publisher.get(server)
        view.endpoint = str(endpoints.get(ClusterId(target.cluster_id), ""))
        return status.replicas

    async def _entries(
        self, server: v2.InferenceServer, target: v2.ClusterTarget
    ) -> tuple[Entry, ...]:
        key = key_of(server)
        if not await self.model_config.check_model_config_exists(key, target):
            return ()
        return await self.model_config.get_models_from_config(key, target)

    async def _describe_loads(
        self,
        replicas: dict[ReplicaName, ext.ReplicaView],
        server: v2.InferenceServer,
        target: v2.ClusterTarget,
        model: ModelName,
    ) -> None:
        backend = self.backends.get(server.spec.backend_type)
        report = await backend.get_model_status(key_of(server), target, model)
        for row in report.rows:
            if row.replica in replicas:
                replicas[row.replica].models.append(
                    ext.ModelView(name=model, state=str(row.state), reason=row.reason)
                )

    async def _describe_route(
        self,
        answer: ext.DescribeResponse,
        route: RouteId,
        target: v2.ClusterTarget | None,
        deployment: str,
    ) -> None:
        rules = await self.routes.list_rules(target, route)
        is_live = bool(rules) and await self._is_live(route, target)
        answer.routes.extend(
            ext.RouteView(
                name=route.key.name,
                cluster_id=route.cluster or "",
                match_path=rule.match_path,
                rewrite_path=rule.rewrite_path,
                target=rule.backend,
                live=is_live,
            )
            for rule in rules
            if not deployment or rule.match_path.endswith(f"/{deployment}")
        )

    async def _is_live(self, route: RouteId, target: v2.ClusterTarget | None) -> bool:
        """Tell whether a route is seen to be live: a silent data plane hides nothing else."""
        try:
            return await self.routes.is_live(target, route)
        except Unavailable:
            return False


def _only(resource: Resource) -> str:
    """Return the Deployment whose part alone is shown, empty for a whole server."""
    return resource.metadata.name if isinstance(resource, v2.Deployment) else ""


def _routes(
    server: v2.InferenceServer,
) -> "list[tuple[RouteId, v2.ClusterTarget | None]]":
    key = key_of(server)
    traffic = [
        (RouteId.traffic(key, ClusterId(target.cluster_id)), target)
        for target in known_targets(server)
    ]
    return [(RouteId.discovery(key), None), *traffic]


def _event(row: EventRow) -> ext.Event:
    event = ext.Event(
        type=row.type,
        reason=row.reason,
        message=row.message,
        count=row.count,
        source=row.source,
    )
    event.first_time.FromDatetime(row.first_time)
    event.last_time.FromDatetime(row.last_time)
    return event


def _entry(entry: Entry) -> ext.EntryView:
    return ext.EntryView(
        name=entry.name,
        storage_path=entry.storage_path,
        deployment_name=entry.deployment_name,
        phase=entry.phase,
        canary_pod=entry.canary_pod,
    )


def _replica(status: ReplicaStatus) -> ext.ReplicaView:
    view = ext.ReplicaView(
        name=status.name,
        state=status.state,
        ready=status.ready,
        pid=status.pid,
        address=status.address,
        restarts=status.restarts,
        reason=status.reason,
    )
    if status.started is not None:
        view.started_time.FromDatetime(status.started)
    return view
