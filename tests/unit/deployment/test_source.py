"""From a Model to a storage path (behaviour 6.5), and the look at what is there."""

import pytest

from maserve.base.errors import Unavailable
from maserve.deployment.stock.site import Trouble
from maserve.deployment.stock.source import check_artifact, resolve_source, storage_path
from maserve.testing.builders import a_deployment, a_model, a_revision
from maserve.testing.control_rig import ControlRig
from maserve.testing.store_fake import FakeStore
from maserve.wire import v2


def without_package(model: v2.Model) -> v2.Model:
    model.spec.ClearField("package_type")
    return model


def of_type(kind: "v2.DeployableModelPackageType") -> v2.Model:
    model = a_model()
    model.spec.package_type = kind
    return model


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("s3://deploy-models/m1", "s3://deploy-models/m1/"),
        ("s3://deploy-models/m1/", "s3://deploy-models/m1/"),
        ("gs://bucket/m1.tar", "gs://bucket/m1.tar"),
        ("az://bucket/m1.tar.gz", "az://bucket/m1.tar.gz"),
        ("https://host/m1.tgz", "https://host/m1.tgz"),
        ("http://host/m1.zip", "http://host/m1.zip"),
        ("file:///models/m1", "file:///models/m1/"),
        ("s3://deploy-models/m1.tarred", "s3://deploy-models/m1.tarred/"),
    ],
)
def test_a_folder_gets_its_slash_and_an_archive_stays(uri: str, path: str) -> None:
    assert storage_path(a_model(uri=uri)) == path


def test_an_unset_package_type_is_taken_for_triton() -> None:
    assert storage_path(without_package(a_model())) == "file:///models/m1/"


def test_the_first_artifact_counts() -> None:
    model = a_model(uri="s3://first")
    model.spec.deployable_artifact_uri.append("s3://second")

    assert storage_path(model) == "s3://first/"


@pytest.mark.parametrize(
    ("model", "reason", "text"),
    [
        pytest.param(
            of_type(v2.DEPLOYABLE_MODEL_PACKAGE_TYPE_RAW),
            "ModelPackageTypeMismatch",
            "Model m1: spec.package_type must be TRITON or unset, "
            "is DEPLOYABLE_MODEL_PACKAGE_TYPE_RAW",
            id="another-package",
        ),
        pytest.param(
            a_model(uri="ftp://host/m1"),
            "UnsupportedArtifactScheme",
            "Model m1: spec.deployable_artifact_uri 'ftp://host/m1' must start with one of "
            "file://, s3://, gs://, az://, http://, https://",
            id="another-scheme",
        ),
        pytest.param(
            a_model(uri="models/m1"),
            "UnsupportedArtifactScheme",
            "Model m1: spec.deployable_artifact_uri 'models/m1' must start with one of "
            "file://, s3://, gs://, az://, http://, https://",
            id="no-scheme",
        ),
    ],
)
def test_a_model_that_cannot_be_served_says_which_field(
    model: v2.Model, reason: str, text: str
) -> None:
    with pytest.raises(Trouble) as caught:
        storage_path(model)

    assert (caught.value.reason, caught.value.text) == (reason, text)
    assert caught.value.permanent


def test_a_model_without_artifact_is_refused() -> None:
    model = a_model()
    del model.spec.deployable_artifact_uri[:]

    with pytest.raises(Trouble) as caught:
        storage_path(model)

    assert caught.value.reason == "NoDeployableArtifact"
    assert str(caught.value) == (
        "NoDeployableArtifact: Model m1: spec.deployable_artifact_uri is empty"
    )


@pytest.mark.parametrize(
    ("namespace", "stored_in"),
    [
        pytest.param("", "ns", id="the-deployments-own"),
        pytest.param("shared", "shared", id="the-revisions"),
    ],
)
async def test_a_model_is_read_in_its_namespace(
    rig: ControlRig, namespace: str, stored_in: str
) -> None:
    await rig.store.create(a_model("m1", namespace=stored_in))
    revision = a_revision("m1", namespace)

    assert await resolve_source(rig.ports, a_deployment(), revision) == "file:///models/m1/"


async def test_a_missing_model_is_final(rig: ControlRig) -> None:
    with pytest.raises(Trouble) as caught:
        await resolve_source(rig.ports, a_deployment(), a_revision("m9"))

    assert (caught.value.reason, caught.value.permanent) == ("ModelNotFound", True)
    assert "Model ns/m9 not found" in caught.value.text


async def test_a_model_that_cannot_be_read_now_is_retried(rig: ControlRig) -> None:
    assert isinstance(rig.store, FakeStore)
    rig.store.fail_next(Unavailable("store away"))

    with pytest.raises(Trouble) as caught:
        await resolve_source(rig.ports, a_deployment(), a_revision("m1"))

    assert (caught.value.reason, caught.value.permanent) == ("ModelResolutionFailed", False)


async def test_an_artifact_that_is_there_passes(rig: ControlRig) -> None:
    await check_artifact(rig.ports, "m1", "s3://there/")


async def test_a_missing_artifact_is_final(rig: ControlRig) -> None:
    rig.artifacts.missing.add("s3://gone/")

    with pytest.raises(Trouble) as caught:
        await check_artifact(rig.ports, "m1", "s3://gone/")

    assert (caught.value.reason, caught.value.permanent) == ("ArtifactNotFound", True)


async def test_an_unreadable_path_is_final(rig: ControlRig) -> None:
    rig.artifacts.foreign.add("s3://?/")

    with pytest.raises(Trouble) as caught:
        await check_artifact(rig.ports, "m1", "s3://?/")

    assert (caught.value.reason, caught.value.permanent) == ("ArtifactInvalid", True)


async def test_storage_that_does_not_answer_is_retried(rig: ControlRig) -> None:
    rig.artifacts.fail_next(Unavailable("storage away"))

    with pytest.raises(Trouble) as caught:
        await check_artifact(rig.ports, "m1", "s3://there/")

    assert (caught.value.reason, caught.value.permanent) == ("ModelResolutionFailed", False)
