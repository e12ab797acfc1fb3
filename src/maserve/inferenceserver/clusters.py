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


def is_ending(server: v2.InferenceServer) -> bool:
    """Tell whether nothing of the server shall be left in any cluster."""
    return is_deleting(server) or server.spec.decom_spec.decommission


def known_targets(server: v2.InferenceServer) -> "tuple[v2.ClusterTarget, ...]":
    """Return every cluster that may hold something of the server.

    The remembered ones and the spec's.

    The spec's connection wins; a damaged annotation counts as empty.
    """
    try:
        remembered = parse_targets(server.metadata.annotations.get(KNOWN_CLUSTERS, ""))
    except ValueError:
        remembered = ()
    spec = {target.cluster_id for target in server.spec.cluster_targets}
    return (
        *server.spec.cluster_targets,
        *(target for target in remembered if target.cluster_id not in spec),
    )


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
    """Take one cluster, in which nothing is left, out of the annotation."""
    kept = tuple(target for target in known_targets(server) if target.cluster_id != cluster)
    set_annotation(server, KNOWN_CLUSTERS, render_targets(kept))
