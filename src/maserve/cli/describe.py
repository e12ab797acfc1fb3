"""Answering "why does it not move": everything known about one object, as text. Pure."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from maserve.cli.fields import (
    age,
    condition_status,
    conditions_of,
    serving_server,
    status_value,
    title,
    why,
)
from maserve.cli.tables import align
from maserve.resource import Resource
from maserve.wire import api, ext, v2

_EVENTS = 20
"""How many events are shown, the newest ones."""

Row = tuple[str, ...]


def render(resource: Resource, view: ext.DescribeResponse, now: datetime) -> list[str]:
    """Return the lines: the object, its conditions, clusters, routes and events."""
    lines = [title(resource), *_pairs(_facts(resource, now))]
    lines += _section("Conditions", _conditions(conditions_of(resource), now))
    if isinstance(resource, v2.Deployment):
        old = _conditions(resource.status.conditions_snapshot, now)
        lines += _section("Conditions of the last attempt", old)
    if isinstance(resource, v2.InferenceServer):
        for target in resource.status.cluster_statuses:
            heading = f"Conditions in {target.cluster_id}"
            lines += _section(heading, _conditions(target.conditions, now))
    for cluster in view.clusters:
        lines += _cluster(cluster)
    lines += _section("Routes", _routes(view.routes))
    lines += _section("Events", _events(view.events, now))
    return lines


def _facts(resource: Resource, now: datetime) -> Iterator[tuple[str, str]]:
    for name in ("stage", "state"):
        yield name, status_value(resource, name)
    match resource:
        case v2.Deployment():
            yield from _deployment(resource)
        case v2.InferenceServer():
            yield from _server(resource)
        case v2.Model():
            yield from (("artifact", uri) for uri in resource.spec.deployable_artifact_uri)
        case _:
            pass
    yield "why", why(resource)
    yield "generation", str(resource.metadata.generation or "")
    for name, value in sorted(resource.metadata.annotations.items()):
        yield "annotation", f"{name}={value}"
    yield "age", age(resource.metadata.creationTimestamp.seconds, now)


def _deployment(deployment: v2.Deployment) -> Iterator[tuple[str, str]]:
    spec, status = deployment.spec, deployment.status
    yield "desired", spec.desired_revision.name
    yield "candidate", status.candidate_revision.name
    yield "current", status.current_revision.name
    yield "server", _server_of(deployment)
    yield "strategy", spec.strategy.WhichOneof("rollout_strategy") or "rolling"


def _server_of(deployment: v2.Deployment) -> str:
    serving, wanted = serving_server(deployment), deployment.spec.inference_server.name
    return wanted if serving == wanted else f"{serving}, wanted on {wanted}"


def _server(server: v2.InferenceServer) -> Iterator[tuple[str, str]]:
    spec = server.spec
    yield "backend", v2.BackendType.Name(spec.backend_type).removeprefix("BACKEND_TYPE_")
    yield "replicas", f"{spec.init_spec.num_instances or 1} per cluster"
    yield "clusters", ", ".join(target.cluster_id for target in spec.cluster_targets)
    yield "observed", str(server.status.observed_generation or "")


def _conditions(conditions: Sequence[api.Condition], now: datetime) -> list[Row]:
    rows = [
        (
            each.type,
            condition_status(each),
            each.reason or "-",
            age(each.last_updated_timestamp, now),
            each.message or "-",
        )
        for each in conditions
    ]
    return [("TYPE", "STATUS", "REASON", "AGE", "MESSAGE"), *rows]


def _cluster(cluster: ext.ClusterView) -> list[str]:
    facts = (("state", cluster.state), ("message", cluster.message))
    ends = (("endpoint", cluster.endpoint), ("error", cluster.error))
    lines = ["", f"Cluster {cluster.cluster_id}", *_pairs((*facts, *ends))]
    lines += _indented(_replicas(cluster.replicas))
    return lines + _indented(_entries(cluster.entries))


def _replicas(replicas: Sequence[ext.ReplicaView]) -> list[Row]:
    rows = [
        (
            each.name,
            each.state or "-",
            "yes" if each.ready else "no",
            str(each.pid or "-"),
            each.address or "-",
            str(each.restarts),
            ", ".join(_model(model) for model in each.models) or "-",
            each.reason or "-",
        )
        for each in replicas
    ]
    first = ("REPLICA", "STATE", "READY", "PID", "ADDRESS", "RESTARTS", "MODELS", "REASON")
    return [first, *rows]


def _model(model: ext.ModelView) -> str:
    reason = f" ({' '.join(model.reason.split())})" if model.reason else ""
    return f"{model.name} {model.state}{reason}"


def _entries(entries: Sequence[ext.EntryView]) -> list[Row]:
    rows = [
        (
            each.name,
            each.phase or "-",
            each.canary_pod or "-",
            each.deployment_name or "-",
            each.storage_path or "-",
        )
        for each in entries
    ]
    return [("WANTED MODEL", "PHASE", "CANARY ON", "DEPLOYMENT", "ARTIFACT"), *rows]


def _routes(routes: Sequence[ext.RouteView]) -> list[Row]:
    rows = [
        (
            each.name,
            each.cluster_id or "-",
            each.match_path,
            each.rewrite_path or "-",
            each.target or "-",
            "yes" if each.live else "no",
        )
        for each in routes
    ]
    return [("ROUTE", "CLUSTER", "PATH", "BECOMES", "TARGET", "LIVE"), *rows]


def _events(events: Sequence[ext.Event], now: datetime) -> list[Row]:
    newest = sorted(events, key=lambda each: (each.last_time.seconds, each.last_time.nanos))
    rows = [
        (
            age(each.last_time.seconds, now),
            each.type,
            each.reason,
            str(each.count or 1),
            " ".join(each.message.split()) or "-",
        )
        for each in newest[-_EVENTS:]
    ]
    return [("AGE", "TYPE", "REASON", "COUNT", "MESSAGE"), *rows]


def _section(heading: str, rows: Sequence[Row]) -> list[str]:
    lines = _indented(rows)
    return ["", heading, *lines] if lines else []


def _indented(rows: Sequence[Row]) -> list[str]:
    return [f"  {line}" for line in align(rows)]


def _pairs(facts: Iterator[tuple[str, str]] | Sequence[tuple[str, str]]) -> list[str]:
    """Return one line a fact that says something."""
    known = [(name, value) for name, value in facts if value]
    return [f"  {line}" for line in align([("", ""), *known])[1:]]
