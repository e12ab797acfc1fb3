"""Tables: what is shown of each kind, and columns that line up."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from maserve.cli.fields import (
    age,
    condition_status,
    conditions_of,
    serving_server,
    short,
    status_value,
)
from maserve.resource import Resource
from maserve.wire import v2


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """The columns of one kind between NAME and AGE. `cells` gives one text for each heading."""

    headings: tuple[str, ...]
    cells: Callable[[Any], tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Rows that line up with each other, also with those that come later."""

    widths: tuple[int, ...]

    def line(self, cells: Sequence[str]) -> str:
        padded = (cell.ljust(width) for cell, width in zip(cells, self.widths, strict=True))
        return "   ".join(padded).rstrip()


def layout(rows: Iterable[Sequence[str]]) -> Layout:
    """Return the widths that fit all `rows`, which have the same number of cells."""
    columns = zip(*rows, strict=True)
    return Layout(widths=tuple(max(map(len, column)) for column in columns))


def align(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the rows, headings first, as lines; nothing when there are only headings."""
    if len(rows) < 2:
        return []
    flat = [[" ".join(cell.split()) for cell in row] for row in rows]
    shape = layout(flat)
    return [shape.line(row) for row in flat]


def headings(kind: type[Resource], *, with_namespace: bool) -> tuple[str, ...]:
    first = ("NAMESPACE", "NAME") if with_namespace else ("NAME",)
    return (*first, *_COLUMNS[kind].headings, "AGE")


def cells(resource: Resource, *, with_namespace: bool, now: datetime) -> tuple[str, ...]:
    """Return the texts of one object's row; what is unset shows as `-`."""
    meta = resource.metadata
    first = (meta.namespace, meta.name) if with_namespace else (meta.name,)
    own = (text or "-" for text in _COLUMNS[type(resource)].cells(resource))
    return (*first, *own, age(meta.creationTimestamp.seconds, now))


def _project(project: v2.Project) -> tuple[str, ...]:
    spec = project.spec
    return (str(spec.tier), ",".join(spec.owner.owners), spec.description)


def _family(family: v2.ModelFamily) -> tuple[str, ...]:
    return (family.spec.name, family.spec.description)


def _model(model: v2.Model) -> tuple[str, ...]:
    spec = model.spec
    uris = spec.deployable_artifact_uri
    more = f" (+{len(uris) - 1})" if len(uris) > 1 else ""
    package = short(v2.DeployableModelPackageType.DESCRIPTOR, spec.package_type)
    return (package, f"{uris[0]}{more}" if uris else "")


def _server(server: v2.InferenceServer) -> tuple[str, ...]:
    targets = [target.cluster_id for target in server.spec.cluster_targets]
    serving = sum(
        each.state == v2.INFERENCE_SERVER_STATE_SERVING and each.cluster_id in targets
        for each in server.status.cluster_statuses
    )
    wanted = server.spec.init_spec.num_instances or 1
    return (
        status_value(server, "state"),
        f"{wanted} per cluster",
        f"{serving}/{len(targets)} {','.join(targets)}",
    )


def _deployment(deployment: v2.Deployment) -> tuple[str, ...]:
    return (
        status_value(deployment, "stage"),
        status_value(deployment, "state"),
        deployment.spec.desired_revision.name,
        deployment.status.current_revision.name,
        serving_server(deployment),
    )


def _revision(revision: v2.Revision) -> tuple[str, ...]:
    spec = revision.spec
    return (spec.base_type.kind, spec.base_resource.name, spec.source, spec.owner.name)


def _cluster(cluster: v2.Cluster) -> tuple[str, ...]:
    ready = next((each for each in conditions_of(cluster) if each.type == "Ready"), None)
    return (cluster.spec.region, condition_status(ready) if ready else "")


def _ray_cluster(cluster: v2.RayCluster) -> tuple[str, ...]:
    return (status_value(cluster, "state"),)


_COLUMNS: dict[type[Resource], Columns] = {
    v2.Project: Columns(headings=("TIER", "OWNERS", "DESCRIPTION"), cells=_project),
    v2.ModelFamily: Columns(headings=("FAMILY", "DESCRIPTION"), cells=_family),
    v2.Model: Columns(headings=("PACKAGE", "ARTIFACT"), cells=_model),
    v2.InferenceServer: Columns(headings=("STATE", "REPLICAS", "CLUSTERS"), cells=_server),
    v2.Deployment: Columns(
        headings=("STAGE", "STATE", "DESIRED", "CURRENT", "SERVER"), cells=_deployment
    ),
    v2.Revision: Columns(headings=("KIND", "OBJECT", "SOURCE", "OWNER"), cells=_revision),
    v2.Cluster: Columns(headings=("REGION", "READY"), cells=_cluster),
    v2.RayCluster: Columns(headings=("STATE",), cells=_ray_cluster),
}
