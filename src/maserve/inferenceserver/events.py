"""What an InferenceServer's events say (behaviour 12)."""

from collections.abc import Iterator

from maserve.conditions import find_condition, first_unmet
from maserve.runtime import EventRecorder
from maserve.wire import api, v2

_STATE = v2.InferenceServerState


def record_changes(
    recorder: EventRecorder, before: v2.InferenceServer, after: v2.InferenceServer, error: str
) -> None:
    """Record what one pass changed: the state, and an error that ended it."""
    if error:
        recorder.warning(after, "ReconciliationError", error)
    held = find_held(after)
    if held is not None and find_held(before) is None:
        recorder.warning(after, "DeletionHeld", held.message)
    for cluster, text in _new_warnings(before, after):
        recorder.warning(after, "ClusterDegraded", f"cluster {cluster}: {text}")
    old, new = before.status.state, after.status.state
    if old == new or held is not None:
        return
    if new == v2.INFERENCE_SERVER_STATE_SERVING:
        recorder.normal(after, "CreationCompleted", "every cluster serves")
    elif new == v2.INFERENCE_SERVER_STATE_FAILED:
        recorder.warning(after, "CreationFailed", _why(after))
    else:
        recorder.normal(after, "StateChange", f"{_STATE.Name(old)} to {_STATE.Name(new)}")


def find_held(server: v2.InferenceServer) -> api.Condition | None:
    """Return the condition that tells why the end of a server waits for a person."""
    found = find_condition(server.status.conditions, "Cleanup")
    return found if found is not None and found.reason == "BackendNotFound" else None


def record_local_meaning(recorder: EventRecorder, server: v2.InferenceServer) -> None:
    """Say what of the spec means something else, or nothing, in the embedded mode."""
    clusters = [t.cluster_id for t in server.spec.cluster_targets if t.HasField("kubernetes")]
    if clusters:
        recorder.normal(
            server,
            "LocalClusters",
            f"the kubernetes connections of cluster targets {', '.join(clusters)} are not used "
            "here: each is a group of processes on this machine",
        )
    resources = [field.name for field, _ in server.spec.init_spec.resource_spec.ListFields()]
    if resources:
        recorder.normal(
            server,
            "ResourcesNotLimited",
            f"{', '.join(resources)} of spec.init_spec.resource_spec are not enforced here: "
            "replicas share this machine without limits",
        )


def _why(server: v2.InferenceServer) -> str:
    """Return the step that failed; those after it have only not begun."""
    failed = first_unmet(server.status.conditions)
    return f"{failed.type}: {failed.message or failed.reason}" if failed else "a step failed"


def _new_warnings(
    before: v2.InferenceServer, after: v2.InferenceServer
) -> Iterator[tuple[str, str]]:
    """Yield what backends say of clusters that serve though something is not as it should be."""
    known = {row.cluster_id: set(_warnings(row)) for row in before.status.cluster_statuses}
    for row in after.status.cluster_statuses:
        for text in _warnings(row):
            if text not in known.get(row.cluster_id, set()):
                yield row.cluster_id, text


def _warnings(row: v2.ClusterTargetStatus) -> list[str]:
    """Return the parts of a serving cluster's message behind its first, which counts replicas."""
    is_serving = row.state == v2.INFERENCE_SERVER_STATE_SERVING
    return row.message.split("; ")[1:] if is_serving else []
