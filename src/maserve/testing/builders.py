"""Resources as a test would say them: only what matters is named, the rest is valid."""

import json
from collections.abc import Sequence

from maserve.base.keys import Key
from maserve.inferenceserver.maker import remember_maker
from maserve.resource.annotations import (
    BACKEND_TYPE,
    KNOWN_SERVERS,
    PLACED_ON,
    TARGET_CLUSTERS,
)
from maserve.resource.targets import render_targets
from maserve.wire import api, v2

NAMESPACE = "ns"
SERVER = Key(NAMESPACE, "is")
"""The InferenceServer that `an_inference_server` builds and `a_deployment` names."""

DEPLOYMENT = Key(NAMESPACE, "d")

_SERVING = v2.INFERENCE_SERVER_STATE_SERVING


def a_target(cluster: str) -> v2.ClusterTarget:
    """Build a cluster target without a connection of its own."""
    return v2.ClusterTarget(cluster_id=cluster)


def a_revision(name: str, namespace: str = NAMESPACE) -> api.ResourceIdentifier:
    """Build a revision; an empty name is the unset one."""
    return api.ResourceIdentifier(name=name, namespace=namespace if name else "")


def a_model(name: str = "m1", *, uri: str = "", namespace: str = NAMESPACE) -> v2.Model:
    """Build a Triton model; `uri` is where its files are."""
    model = v2.Model()
    model.metadata.name, model.metadata.namespace = name, namespace
    model.spec.package_type = v2.DEPLOYABLE_MODEL_PACKAGE_TYPE_TRITON
    model.spec.deployable_artifact_uri.append(uri or f"file:///models/{name}")
    return model


def an_inference_server(
    name: str = SERVER.name,
    *,
    clusters: Sequence[str] = ("c1",),
    replicas: int = 2,
    serving: Sequence[str] = (),
) -> v2.InferenceServer:
    """Build a Triton server; `serving` are the clusters its status reports as such.

    With any, it has the record that its controller makes before the first replica.
    """
    server = v2.InferenceServer()
    server.metadata.name, server.metadata.namespace = name, NAMESPACE
    server.spec.backend_type = v2.BACKEND_TYPE_TRITON
    server.spec.init_spec.num_instances = replicas
    server.spec.cluster_targets.extend(a_target(cluster) for cluster in clusters)
    server.status.cluster_statuses.extend(
        v2.ClusterTargetStatus(cluster_id=cluster, state=_SERVING) for cluster in serving
    )
    if serving:
        remember_maker(server)
    return server


def a_deployment(
    name: str = DEPLOYMENT.name,
    *,
    desired: str = "m1",
    candidate: str = "",
    current: str = "",
    stage: "v2.DeploymentStage" = v2.DEPLOYMENT_STAGE_INVALID,
    server: str = SERVER.name,
    placed: Sequence[str] = (),
) -> v2.Deployment:
    """Build a Deployment; `placed` are the clusters of its placement snapshot."""
    deployment = v2.Deployment()
    deployment.metadata.name, deployment.metadata.namespace = name, NAMESPACE
    deployment.metadata.generation = 1
    deployment.spec.inference_server.name = server
    deployment.status.stage = stage
    _point(deployment.spec.desired_revision, desired)
    _point(deployment.status.candidate_revision, candidate)
    _point(deployment.status.current_revision, current)
    if not desired:
        deployment.spec.ClearField("desired_revision")
    if placed:
        place(deployment, placed, server=server)
    return deployment


def place(deployment: v2.Deployment, clusters: Sequence[str], *, server: str) -> None:
    """Write the placement annotations as a rollout does."""
    annotations = deployment.metadata.annotations
    annotations[TARGET_CLUSTERS] = render_targets(tuple(a_target(c) for c in clusters))
    annotations[BACKEND_TYPE] = "BACKEND_TYPE_TRITON"
    annotations[PLACED_ON] = server
    annotations[KNOWN_SERVERS] = json.dumps([server])


def a_condition(
    type_: str = "Step",
    status: "api.ConditionStatus" = api.CONDITION_STATUS_UNKNOWN,
    *,
    reason: str = "",
    message: str = "",
) -> api.Condition:
    """Build a condition."""
    return api.Condition(type=type_, status=status, reason=reason, message=message)


def _point(field: api.ResourceIdentifier, name: str) -> None:
    if name:
        field.CopyFrom(a_revision(name))
