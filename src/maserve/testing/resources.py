"""Builders of valid resources; keyword arguments change what a test is about."""

from maserve.wire import api, meta, v2


def a_meta(name: str, namespace: str = "demo", **labels: str) -> meta.ObjectMeta:
    """Return metadata of a new object."""
    return meta.ObjectMeta(name=name, namespace=namespace, labels=labels)


def a_project(name: str = "demo") -> v2.Project:
    """Return a project with every field that is asked for."""
    return v2.Project(
        metadata=a_meta(name, name),
        spec=v2.ProjectSpec(
            description="digits",
            owner=v2.OwnerInfo(owning_team="00000000-0000-0000-0000-000000000001"),
            tier=3,
            git_repo="https://example.com/digits",
            root_dir="digits",
        ),
    )


def a_model(name: str = "m1", *, namespace: str = "demo", family: str = "") -> v2.Model:
    """Return a Triton model."""
    model = v2.Model(metadata=a_meta(name, namespace))
    model.spec.package_type = v2.DEPLOYABLE_MODEL_PACKAGE_TYPE_TRITON
    model.spec.deployable_artifact_uri.append(f"file:///models/{name}")
    if family:
        model.spec.model_family.CopyFrom(api.ResourceIdentifier(name=family))
    return model


def an_inference_server(
    name: str = "is1", *, namespace: str = "demo", clusters: tuple[str, ...] = ("c1",)
) -> v2.InferenceServer:
    """Return a Triton server with one replica in each cluster."""
    server = v2.InferenceServer(metadata=a_meta(name, namespace))
    server.spec.backend_type = v2.BACKEND_TYPE_TRITON
    server.spec.init_spec.num_instances = 1
    server.spec.cluster_targets.extend(v2.ClusterTarget(cluster_id=each) for each in clusters)
    return server


def a_deployment(
    name: str = "d1",
    *,
    namespace: str = "demo",
    desired: str = "m1",
    inference_server: str = "is1",
) -> v2.Deployment:
    """Return a rolling deployment of a model on a server."""
    deployment = v2.Deployment(metadata=a_meta(name, namespace))
    deployment.spec.desired_revision.name = desired
    deployment.spec.inference_server.name = inference_server
    deployment.spec.strategy.rolling.SetInParent()
    return deployment


def a_revision(
    name: str = "r1", *, namespace: str = "demo", base_kind: str = "Deployment", base: str = "d1"
) -> v2.Revision:
    """Return a revision of a deployment, or of what `base_kind` says."""
    revision = v2.Revision(metadata=a_meta(name, namespace))
    revision.spec.base_type.kind = base_kind
    revision.spec.base_resource.name = base
    revision.spec.source = "test"
    return revision
