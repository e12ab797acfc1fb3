"""Every derived object name, in one place (behaviour 3.5, 7.1, 8).

Controllers, sidecar and clients compute names here and nowhere else.
"""

from maserve.base.keys import ClusterId, ReplicaName

MAX_INFERENCE_SERVER_NAME = 45
"""`{is}-inference-service` must be a DNS label of at most 63 characters."""

MAX_NAME = 63
"""Namespaces, clusters, models and deployments are DNS labels; they are path segments of routes."""


def inference_service(inference_server: str) -> str:
    """Return the Service over the ready replicas of one server in one cluster."""
    return f"{inference_server}-inference-service"


def endpoints_service(inference_server: str) -> str:
    """Return the discovery Service over the clusters of one server."""
    return f"{inference_server}-endpoints"


def endpoint_slice(inference_server: str, cluster: ClusterId) -> str:
    return f"{inference_server}-endpoints-{cluster}"


def model_config(inference_server: str) -> str:
    return f"{inference_server}-model-config"


def traffic_route(inference_server: str) -> str:
    return f"{inference_server}-traffic"


def discovery_route(inference_server: str) -> str:
    return f"{inference_server}-discovery"


def backend_workload(inference_server: str) -> str:
    """Return the name of the workload (a Kubernetes Deployment) that keeps the replicas."""
    return f"triton-{inference_server}"


def local_replica(inference_server: str, cluster: ClusterId, ordinal: int) -> ReplicaName:
    """Return a replica's name in the embedded mode; `ordinal` is unique within the cluster."""
    return ReplicaName(f"triton-{inference_server}-{cluster}-{ordinal}")


def discovery_path(inference_server: str, deployment: str = "") -> str:
    """Return the public path: `/{is}` or `/{is}/{d}`."""
    return f"/{inference_server}/{deployment}" if deployment else f"/{inference_server}"


def traffic_path(inference_server: str, deployment: str = "") -> str:
    """Return the path between the gateways: `/cluster/{is}` or `/cluster/{is}/{d}`."""
    return f"/cluster{discovery_path(inference_server, deployment)}"


def model_path(model: str) -> str:
    """Return the path of one model on a replica."""
    return f"/v2/models/{model}"


def condition(actor: str, cluster: ClusterId) -> str:
    """Return the type of a per-cluster condition: the cluster's id as suffix (serving guide)."""
    return f"{actor}-{cluster}"
