"""Which clusters an InferenceServer has, wants, and has yet to leave.

A cluster is remembered in an annotation before anything is made in it, so that removing it from
`spec.cluster_targets`, or a lost status, never leaves its objects behind.
"""

from maserve.base.keys import ClusterId
from maserve.resource.metadata import is_deleting, set_annotation
from maserve.resource.targets import parse_targets, render_targets
from maserve.wire import v2

KNOWN_CLUSTERS = "inferenceserver.michelangelo.ai/known-clusters"
"""JSON list of `{clusterId, host, port, tokenTag, caDataTag}`: everywhere something may exist."""

FINALIZER = "inferenceservers.michelangelo.api/finalizer"

_NOTHING_THERE = (
    v2.INFERENCE_SERVER_STATE_INVALID,
    v2.INFERENCE_SERVER_STATE_CREATE_PENDING,
    v2.INFERENCE_SERVER_STATE_DELETED,
)


def is_ending(server: v2.InferenceServer) -> bool:
    """Tell whether nothing of the server shall be left in any cluster."""
    return is_deleting(server) or server.spec.decom_spec.decommission


def holds_something(server: v2.InferenceServer) -> bool:
    """Tell whether the status has seen anything of the server in any cluster."""
    return bool(_rows_with_something(server))


def known_targets(server: v2.InferenceServer) -> "tuple[v2.ClusterTarget, ...]":
    """Return every cluster that may hold something of the server: first the spec's, in order.

    Then those that are remembered, and those where the status last saw something: a client that
    replaces the annotations must not make a cluster forgotten. A damaged annotation counts as
    empty.
    """
    try:
        remembered = parse_targets(server.metadata.annotations.get(KNOWN_CLUSTERS, ""))
    except ValueError:
        remembered = ()
    seen = (v2.ClusterTarget(cluster_id=row.cluster_id) for row in _rows_with_something(server))
    known: dict[str, v2.ClusterTarget] = {}
    for target in (*server.spec.cluster_targets, *remembered, *seen):
        known.setdefault(target.cluster_id, target)
    return tuple(known.values())


def removed_targets(server: v2.InferenceServer) -> "tuple[v2.ClusterTarget, ...]":
    """Return the clusters that are remembered but no longer in the spec."""
    spec = {target.cluster_id for target in server.spec.cluster_targets}
    return tuple(target for target in known_targets(server) if target.cluster_id not in spec)


def remember_targets(server: v2.InferenceServer) -> bool:
    """Put every known cluster into the annotation; tell whether that changed it."""
    text = render_targets(known_targets(server))
    if server.metadata.annotations.get(KNOWN_CLUSTERS) == text:
        return False
    set_annotation(server, KNOWN_CLUSTERS, text)
    return True


def forget_target(server: v2.InferenceServer, cluster: ClusterId) -> None:
    """Take one cluster, in which nothing is left, out of annotation and status."""
    kept = tuple(target for target in known_targets(server) if target.cluster_id != cluster)
    set_annotation(server, KNOWN_CLUSTERS, render_targets(kept))
    rows = [row for row in server.status.cluster_statuses if row.cluster_id != cluster]
    del server.status.cluster_statuses[:]
    server.status.cluster_statuses.extend(rows)


def _rows_with_something(server: v2.InferenceServer) -> "list[v2.ClusterTargetStatus]":
    rows = server.status.cluster_statuses
    return [row for row in rows if row.state not in _NOTHING_THERE]
