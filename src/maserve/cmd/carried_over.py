"""Settings that a file for Kubernetes may bring along and that do nothing here (behaviour 11).

A default is accepted: nothing is asked for. Everything else is refused with a text that says why
and what to do instead; nothing is dropped in silence.
"""

from collections.abc import Mapping

from maserve.cmd.section import Section

_NO_GATE = "there is no metric gate, leave it unset"
_OUTSIDE = "is outside serving: pipelines and jobs are not run here; leave it out"

ELSEWHERE: Mapping[str, str] = {
    "apiserver": "is --api-address here, and there are no CRDs to sync; leave it out",
    "controllers": "limits a Kubernetes client: RayClusters are only kept here; leave it out",
    "ingester": "belongs to the metadata storage, which is not supported; leave it out",
    "jobs": _OUTSIDE,
    "k8s": "limits calls to a Kubernetes API server: there is none here; leave it out",
    "minio": (
        "is read from the environment: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_ENDPOINT_URL; "
        "leave it out"
    ),
    "notification": _OUTSIDE,
    "pipeline": _OUTSIDE,
    "pipelineRun": _OUTSIDE,
    "secrets": "is about connections to clusters, which are not used here; leave it out",
    "webhook": "converts CRDs: there are none here; leave it out",
    "workflowClient": _OUTSIDE,
}
"""Blocks of the reference's `base.yaml`, and why they are refused."""

CONTROLLER_MANAGER: Mapping[str, str] = {
    "metricsBindAddress": "is --metrics-address here; leave it out",
    "healthProbeBindAddress": "is the health service of the API server here; leave it out",
    "leaderElectionID": "has no effect without leader election; leave it out",
}

INFERENCE_SERVER: Mapping[str, str] = {
    "gateway": (
        "names a Gateway of Kubernetes: here it is an Envoy of this machine, whose address is "
        "--gateway-address; leave it out"
    ),
}

DEFAULT_QUERY = "triton-inference-failure-ratio"
DEFAULT_THRESHOLD = 0.05
DEFAULT_TIMEOUT_S = 10.0


def check_blocks(root: Section) -> None:
    """Refuse what belongs to Kubernetes or to another part of the platform."""
    root.refuse_elsewhere(ELSEWHERE)
    root.part("inferenceServer").refuse_elsewhere(INFERENCE_SERVER)
    manager = root.part("controllermgr")
    manager.refuse_elsewhere(CONTROLLER_MANAGER)
    if manager.flag("leaderElection", default=False):
        manager.refuse("leaderElection", "is not needed: one process has the data folder")
    if root.part("metadataStorage").flag("enableMetadataStorage", default=False):
        text = "is not supported: leave it false"
        root.part("metadataStorage").refuse("enableMetadataStorage", text)


def check_image(triton: Section) -> None:
    """Refuse an image: Triton is the one that is installed."""
    if triton.text("defaultImage"):
        text = "has no effect: Triton comes from the installed wheel; leave it out"
        triton.refuse("defaultImage", text)


def check_metric_gate(gate: Section) -> None:
    """Refuse to turn the gate on, and what would only have an effect then.

    A URL that is empty means no gate, as in the guide; so do the guide's own defaults.
    """
    if gate.text("prometheusURL"):
        gate.refuse("prometheusURL", f"is not supported: {_NO_GATE}")
    if gate.flag("failClosed", default=False):
        gate.refuse("failClosed", f"has no effect: {_NO_GATE}")
    if gate.duration("timeout", DEFAULT_TIMEOUT_S) != DEFAULT_TIMEOUT_S:
        gate.refuse("timeout", f"has no effect: {_NO_GATE}")
    if not all(map(_is_default, gate.rows("queries"))):
        gate.refuse("queries", f"has no effect: {_NO_GATE}")


def _is_default(query: Mapping[str, object]) -> bool:
    """Tell whether a query is the guide's: failures of more than 5 %, however it is spelled."""
    return (
        query.get("name") == DEFAULT_QUERY
        and query.get("threshold", DEFAULT_THRESHOLD) == DEFAULT_THRESHOLD
        and str(query.get("comparison", "gt")).lower() == "gt"
    )
