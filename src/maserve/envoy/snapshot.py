"""All of Envoy's discovery resources at one moment, and the safe way from one to the next.

Pure. A version is a hash of the content: the same state gives the same versions after a restart of
the control plane, so nothing is swapped that has not changed.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from maserve.base.keys import ClusterId
from maserve.envoy.layout import Layout, service_name, table_name
from maserve.envoy.manifest import (
    Resource,
    build_endpoints,
    build_listener,
    build_service_cluster,
)
from maserve.envoy.route_manifest import TableRule
from maserve.envoy.state import State
from maserve.envoy.types import LOOPBACK, Address, EnvoySettings, RouteRef, ServiceRef


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Resources by name; listeners and route tables share names, clusters and endpoints too."""

    clusters: Mapping[str, Resource] = field(default_factory=dict)
    endpoints: Mapping[str, Resource] = field(default_factory=dict)
    routes: Mapping[str, Resource] = field(default_factory=dict)
    listeners: Mapping[str, Resource] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoveryFile:
    """One file Envoy reads, and the scope of the statistics that tell its running version."""

    path: Path
    scope: str
    version: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileContent:
    """What one discovery file holds, and the scope of the statistics that tell its version."""

    path: Path
    scope: str
    resources: tuple[Resource, ...]


def build_snapshot(
    state: State,
    tables: Mapping[ClusterId | None, Resource],
    layout: Layout,
    settings: EnvoySettings,
) -> Snapshot:
    """Render the state with its route tables (see `tables_of`).

    Services that only a rule names are there, without addresses.
    """
    services = {ref: state.services.get(ref, ()) for ref in _all_services(state)}
    return Snapshot(
        clusters={
            service_name(ref): build_service_cluster(
                service_name(ref),
                endpoints_file=layout.endpoints(service_name(ref)),
                is_ingress=ref.cluster is None,
                settings=settings,
            )
            for ref in services
        },
        endpoints={
            service_name(ref): build_endpoints(service_name(ref), addresses)
            for ref, addresses in services.items()
        },
        routes={table_name(cluster): tables[cluster] for cluster in tables_of(state)},
        listeners={
            table_name(cluster): build_listener(
                table_name(cluster),
                address=_listener_address(cluster, state, settings),
                routes_file=layout.routes(table_name(cluster)),
                is_gateway=cluster is None,
                settings=settings,
            )
            for cluster in tables_of(state)
        },
    )


def tables_of(state: State) -> tuple[ClusterId | None, ...]:
    """Return whose route tables there are: the gateway's (None) and the local clusters'."""
    return (None, *sorted(state.listeners))


def watched(state: State) -> frozenset[str]:
    """Return what has a file of its own, which Envoy watches with an instance of its own."""
    return frozenset(map(table_name, tables_of(state))) | frozenset(
        map(service_name, _all_services(state))
    )


def table_rules(state: State, cluster: ClusterId | None) -> tuple[TableRule, ...]:
    """Return the rules of one table, the oldest route's first; later claims are shadowed."""
    routes = sorted(
        ((ref, route) for ref, route in state.routes.items() if ref.cluster == cluster),
        key=lambda item: item[1].order,
    )
    claimed: set[str] = set()
    rules: list[TableRule] = []
    for ref, route in routes:
        for rule in route.rules:
            rules.append(TableRule(ref=ref, rule=rule, is_shadowed=rule.match_path in claimed))
            claimed.add(rule.match_path)
    return tuple(rules)


def find_owner(state: State, ref: RouteRef) -> TableRule | None:
    """Return the older rule that has a path of this route at the gateway, None for none."""
    if ref.cluster is not None:
        return None
    rules = table_rules(state, None)
    lost = {each.rule.match_path for each in rules if each.ref == ref and each.is_shadowed}
    return next((each for each in rules if each.rule.match_path in lost), None)


def steps(old: Snapshot, new: Snapshot) -> tuple[Snapshot, ...]:
    """Return what to swap in, one after another, so that no route ever points at nothing.

    First clusters and endpoints are there for both; then routes turn (and new listeners open); then
    what only the old one had goes. Empty when nothing differs.
    """
    make = replace(
        old,
        clusters={**old.clusters, **new.clusters},
        endpoints={**old.endpoints, **new.endpoints},
    )
    turn = replace(
        make,
        routes={**old.routes, **new.routes},
        listeners={**old.listeners, **new.listeners},
    )
    close = replace(turn, listeners=new.listeners, routes=new.routes)
    return tuple(_without_repeats((make, turn, close, new), last=old))


def contents(snapshot: Snapshot, layout: Layout) -> tuple[FileContent, ...]:
    """Return what all files hold in the order of writing: what is named comes first."""
    clusters, listeners = snapshot.clusters.values(), snapshot.listeners.values()
    return (
        *(
            _content(layout.endpoints(name), f"cluster.{name}", [resource])
            for name, resource in snapshot.endpoints.items()
        ),
        _content(layout.clusters, "cluster_manager.cds", clusters),
        *(
            _content(layout.routes(name), route_scope(name), [resource])
            for name, resource in snapshot.routes.items()
        ),
        _content(layout.listeners, "listener_manager.lds", listeners),
    )


def build_file(content: FileContent) -> DiscoveryFile:
    """Render one file; its version is a hash of what it holds."""
    body = json.dumps(content.resources, sort_keys=True, separators=(",", ":"))
    version = hashlib.sha256(body.encode()).hexdigest()[:16]
    text = f'{{"version_info":"{version}","resources":{body}}}'
    return DiscoveryFile(path=content.path, scope=content.scope, version=version, text=text)


def route_scope(table: str) -> str:
    """Return the statistics scope of a route table."""
    return f"http.{table}.rds.{table}"


def _all_services(state: State) -> list[ServiceRef]:
    named = {
        ServiceRef(cluster=ref.cluster, namespace=ref.namespace, name=rule.service)
        for ref, route in state.routes.items()
        for rule in route.rules
    }
    return sorted(named | set(state.services), key=str)


def _without_repeats(snapshots: Iterable[Snapshot], *, last: Snapshot) -> Iterable[Snapshot]:
    for snapshot in snapshots:
        if snapshot != last:
            yield snapshot
        last = snapshot


def _content(path: Path, scope: str, resources: Iterable[Resource]) -> FileContent:
    return FileContent(path=path, scope=scope, resources=tuple(resources))


def _listener_address(cluster: ClusterId | None, state: State, settings: EnvoySettings) -> Address:
    if cluster is None:
        return settings.gateway
    return Address(host=LOOPBACK, port=state.listeners[cluster])
