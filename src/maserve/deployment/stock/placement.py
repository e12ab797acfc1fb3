"""Where a rollout works, and where the current revision is served (behaviour 5.6, ADR 0016)."""

from dataclasses import dataclass

from maserve.base.keys import Key
from maserve.deployment.keys import server_name
from maserve.deployment.places import candidate_server, is_moving, known_servers, record_known
from maserve.resource.annotations import (
    BACKEND_TYPE,
    CANDIDATE_BACKEND,
    CANDIDATE_CLUSTERS,
    CANDIDATE_SERVER,
    PLACED_ON,
    TARGET_CLUSTERS,
)
from maserve.resource.metadata import set_annotation
from maserve.resource.targets import parse_targets, render_targets
from maserve.wire import v2


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One InferenceServer with the recorded clusters, in rollout order."""

    server: Key
    targets: tuple[v2.ClusterTarget, ...]
    backend_type: v2.BackendType


def serving_place(deployment: v2.Deployment) -> Place:
    """Return where the current revision is served."""
    name = server_name(deployment)
    return _place(deployment, name, clusters=TARGET_CLUSTERS, backend=BACKEND_TYPE)


def candidate_place(deployment: v2.Deployment) -> Place:
    """Return where the rollout works: the serving place, or another while it moves."""
    if not is_moving(deployment):
        return serving_place(deployment)
    name = candidate_server(deployment)
    return _place(deployment, name, clusters=CANDIDATE_CLUSTERS, backend=CANDIDATE_BACKEND)


def snapshot_of(deployment: v2.Deployment) -> tuple[v2.ClusterTarget, ...]:
    """Return the clusters of the serving place; none before placement, or for a damaged record."""
    return serving_place(deployment).targets


def record_placement(
    deployment: v2.Deployment, server: v2.InferenceServer, targets: tuple[v2.ClusterTarget, ...]
) -> None:
    """Write where the Deployment is placed into `deployment`, the caller's own copy.

    On another server than it is placed on, that is where its candidate is being made.
    """
    name = server.metadata.name
    placed = deployment.metadata.annotations.get(PLACED_ON, "")
    record_known(deployment, (*known_servers(deployment), name) if placed else (name,))
    here = (TARGET_CLUSTERS, BACKEND_TYPE, PLACED_ON)
    there = (CANDIDATE_CLUSTERS, CANDIDATE_BACKEND, CANDIDATE_SERVER)
    clusters, backend, on = here if placed in ("", name) else there
    set_annotation(deployment, clusters, render_targets(targets))
    set_annotation(deployment, backend, v2.BackendType.Name(server.spec.backend_type))
    set_annotation(deployment, on, name)


def parse_backend_type(name: str) -> v2.BackendType:
    """Return the recorded backend type; absent, unknown or INVALID means Triton (behaviour 5.6)."""
    known = dict(v2.BackendType.items())
    value = known.get(name, v2.BACKEND_TYPE_INVALID)
    return v2.BackendType(value or v2.BACKEND_TYPE_TRITON)


def still_wanted(
    snapshot: tuple[v2.ClusterTarget, ...], server: v2.InferenceServer | None
) -> tuple[v2.ClusterTarget, ...]:
    """Return the snapshot without the clusters that the server's spec no longer names.

    Their replicas and configs go with the server's own cleanup, so no step can wait for them. A
    server that is gone changes nothing.
    """
    if server is None:
        return snapshot
    named = {target.cluster_id for target in server.spec.cluster_targets}
    return tuple(target for target in snapshot if target.cluster_id in named)


def everywhere(
    recorded: tuple[v2.ClusterTarget, ...], server: v2.InferenceServer | None
) -> tuple[v2.ClusterTarget, ...]:
    """Return every cluster of a server that may hold something of a Deployment.

    The recorded ones first, then clusters of the server that a later record left out.
    """
    seen = {target.cluster_id for target in recorded}
    more = () if server is None else tuple(server.spec.cluster_targets)
    return (*recorded, *(target for target in more if target.cluster_id not in seen))


def _place(deployment: v2.Deployment, server: str, *, clusters: str, backend: str) -> Place:
    annotations = deployment.metadata.annotations
    try:
        targets = parse_targets(annotations.get(clusters, ""))
    except ValueError:
        targets = ()
    return Place(
        server=Key(deployment.metadata.namespace, server),
        targets=targets,
        backend_type=parse_backend_type(annotations.get(backend, "")),
    )
