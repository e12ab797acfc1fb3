"""The placement snapshot: the clusters a rollout works on, in order (behaviour 5.6)."""

from maserve.resource.annotations import BACKEND_TYPE, PLACED_ON, TARGET_CLUSTERS
from maserve.resource.metadata import set_annotation
from maserve.resource.targets import parse_targets, render_targets
from maserve.wire import v2


def snapshot_of(deployment: v2.Deployment) -> tuple[v2.ClusterTarget, ...]:
    """Return the recorded clusters; none before placement, or when the record is damaged."""
    try:
        return parse_targets(deployment.metadata.annotations.get(TARGET_CLUSTERS, ""))
    except ValueError:
        return ()


def record_placement(
    deployment: v2.Deployment, server: v2.InferenceServer, targets: tuple[v2.ClusterTarget, ...]
) -> None:
    """Write the three placement annotations into `deployment`, the caller's own copy."""
    set_annotation(deployment, TARGET_CLUSTERS, render_targets(targets))
    set_annotation(deployment, BACKEND_TYPE, v2.BackendType.Name(server.spec.backend_type))
    set_annotation(deployment, PLACED_ON, server.metadata.name)


def backend_type(deployment: v2.Deployment) -> v2.BackendType:
    """Return the recorded backend type; absent, unknown or INVALID means Triton (behaviour 5.6)."""
    name = deployment.metadata.annotations.get(BACKEND_TYPE, "")
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
    deployment: v2.Deployment, server: v2.InferenceServer | None
) -> tuple[v2.ClusterTarget, ...]:
    """Return every cluster that may hold something of the Deployment.

    The snapshot first, then clusters of the server that a later snapshot left out.
    """
    snapshot = snapshot_of(deployment)
    seen = {target.cluster_id for target in snapshot}
    more = () if server is None else tuple(server.spec.cluster_targets)
    return (*snapshot, *(target for target in more if target.cluster_id not in seen))
