"""The first three rollout actors: Validated, AssetsPrepared, PlacementPrepared."""

from collections.abc import Callable

import pytest

from maserve.base.errors import Unavailable
from maserve.base.keys import Key
from maserve.conditions import FALSE, TRUE, UNKNOWN, read_progress
from maserve.deployment.stock.placement import snapshot_of
from maserve.deployment.stock.rollout.assets_prepared import AssetsPrepared
from maserve.deployment.stock.rollout.placement_prepared import PlacementPrepared
from maserve.deployment.stock.rollout.validated import Validated
from maserve.resource.annotations import PLACED_ON
from maserve.testing.builders import a_deployment, a_model, an_inference_server
from maserve.testing.control_rig import ControlRig
from maserve.testing.expect import act, expect_condition, look
from maserve.testing.store_fake import FakeStore
from maserve.wire import v2

BUDGET_S = 900.0
CREATING = v2.INFERENCE_SERVER_STATE_CREATING
FAILED = v2.INFERENCE_SERVER_STATE_FAILED


def failing_store(rig: ControlRig) -> FakeStore:
    assert isinstance(rig.store, FakeStore)
    return rig.store


async def a_stored_server(rig: ControlRig, **states: "v2.InferenceServerState") -> None:
    """Store a server whose clusters report the given states; INVALID means no row yet."""
    server = await rig.store.create(an_inference_server(clusters=list(states)))
    server.status.cluster_statuses.extend(
        v2.ClusterTargetStatus(cluster_id=cluster, state=state) for cluster, state in states.items()
    )
    await rig.store.update_status(server)


SERVING = v2.INFERENCE_SERVER_STATE_SERVING


def a_rollout() -> v2.Deployment:
    return a_deployment(desired="m1", candidate="m1")


async def test_validated_is_true_when_model_and_server_are_there(rig: ControlRig) -> None:
    await rig.provide()
    await rig.store.create(a_model("m1"))

    expect_condition(await look(Validated(rig.ports), a_rollout()), TRUE)


def of_another_framework(model: v2.Model) -> None:
    model.spec.package_type = v2.DEPLOYABLE_MODEL_PACKAGE_TYPE_RAW


def without_artifact(model: v2.Model) -> None:
    del model.spec.deployable_artifact_uri[:]


def on_a_floppy(model: v2.Model) -> None:
    model.spec.deployable_artifact_uri[0] = "floppy://a/m1"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        pytest.param(of_another_framework, "ModelPackageTypeMismatch", id="package"),
        pytest.param(without_artifact, "NoDeployableArtifact", id="no-artifact"),
        pytest.param(on_a_floppy, "UnsupportedArtifactScheme", id="scheme"),
    ],
)
async def test_validated_fails_at_once_for_a_model_that_cannot_be_served(
    rig: ControlRig, change: Callable[[v2.Model], None], reason: str
) -> None:
    await rig.provide()
    model = a_model("m1")
    change(model)
    await rig.store.create(model)

    expect_condition(await act(Validated(rig.ports), a_rollout()), FALSE, reason, says="Model m1")


async def test_validated_fails_at_once_for_a_missing_model(rig: ControlRig) -> None:
    await rig.provide()

    expect_condition(
        await act(Validated(rig.ports), a_rollout()), FALSE, "ModelNotFound", says="Model ns/m1"
    )


async def test_validated_waits_for_the_server_before_it_asks_for_the_model(rig: ControlRig) -> None:
    deployment = a_rollout()

    expect_condition(
        await act(Validated(rig.ports), deployment), UNKNOWN, "InferenceServerNotFound"
    )
    await rig.provide()
    await rig.store.create(a_model("m1"))
    expect_condition(await act(Validated(rig.ports), deployment), TRUE)


async def test_a_model_deleted_in_the_middle_of_its_rollout_was_valid(rig: ControlRig) -> None:
    await rig.provide()
    await rig.store.create(a_model("m1"))
    deployment = a_rollout()
    await act(Validated(rig.ports), deployment)
    await rig.store.delete(v2.Model, Key("ns", "m1"))

    expect_condition(await look(Validated(rig.ports), deployment), TRUE)


def without_target(deployment: v2.Deployment) -> v2.Deployment:
    deployment.spec.ClearField("inference_server")
    return deployment


def on_mobile(deployment: v2.Deployment) -> v2.Deployment:
    deployment.spec.mobile_spec.SetInParent()
    return deployment


@pytest.mark.parametrize(
    ("deployment", "reason", "field"),
    [
        pytest.param(
            without_target(a_deployment()),
            "NoInferenceServer",
            "spec.inference_server.name",
            id="no-server",
        ),
        pytest.param(
            on_mobile(a_deployment()), "NoInferenceServer", "spec.inference_server", id="mobile"
        ),
        pytest.param(
            a_deployment(server=""), "NoInferenceServer", "spec.inference_server.name", id="unnamed"
        ),
        pytest.param(
            a_deployment(desired=""),
            "NoDesiredRevision",
            "spec.desired_revision.name",
            id="no-model",
        ),
        pytest.param(
            a_deployment(desired="../m1"),
            "InvalidModelName",
            "spec.desired_revision.name '../m1'",
            id="a-path",
        ),
    ],
)
async def test_validated_fails_at_once_naming_the_field(
    rig: ControlRig, deployment: v2.Deployment, reason: str, field: str
) -> None:
    await rig.provide()

    expect_condition(await act(Validated(rig.ports), deployment), FALSE, reason, says=field)


async def test_validated_refuses_the_current_models_name_from_another_namespace(
    rig: ControlRig,
) -> None:
    await rig.provide()
    deployment = a_deployment(desired="m1", candidate="m1", current="m1")
    deployment.status.candidate_revision.namespace = "other"

    expect_condition(
        await act(Validated(rig.ports), deployment),
        FALSE,
        "ModelNameTaken",
        says="Model other/m1 has the name of the current model ns/m1",
    )


async def test_validated_takes_no_namespace_for_the_deployments_own(rig: ControlRig) -> None:
    await rig.provide()
    deployment = a_deployment(desired="m1", candidate="m1", current="m1")
    deployment.status.candidate_revision.namespace = ""
    await rig.store.create(a_model("m1"))

    expect_condition(await act(Validated(rig.ports), deployment), TRUE)


async def test_validated_waits_for_a_server_that_is_not_there_yet(rig: ControlRig) -> None:
    deployment = a_deployment()

    condition = await act(Validated(rig.ports), deployment)

    expect_condition(
        condition, UNKNOWN, "InferenceServerNotFound", says="InferenceServer ns/is not found"
    )


async def test_validated_gives_up_on_a_missing_server_after_the_budget(rig: ControlRig) -> None:
    deployment = a_deployment()
    await act(Validated(rig.ports), deployment)
    rig.advance(BUDGET_S)

    expect_condition(
        await act(Validated(rig.ports), deployment),
        FALSE,
        "InferenceServerNotFound",
        says="(still failing after 15m)",
    )


async def test_validated_retries_a_store_that_does_not_answer(rig: ControlRig) -> None:
    failing_store(rig).fail_next(Unavailable("store away"))
    failing_store(rig).fail_next(Unavailable("store away"))

    expect_condition(
        await act(Validated(rig.ports), a_deployment()),
        UNKNOWN,
        "InferenceServerReadFailed",
        says="store away",
    )


async def test_assets_are_resolved_once_and_remembered(rig: ControlRig) -> None:
    await rig.store.create(a_model("m1"))
    deployment = a_deployment(candidate="m1")
    actor = AssetsPrepared(rig.ports)

    expect_condition(await look(actor, deployment), UNKNOWN, "ModelNotResolved")
    expect_condition(await act(actor, deployment), TRUE)
    rig.artifacts.fail_reads = Unavailable("storage away")
    expect_condition(await look(actor, deployment), TRUE)


async def test_assets_are_the_candidates(rig: ControlRig) -> None:
    await rig.store.create(a_model("m1"))

    expect_condition(
        await act(AssetsPrepared(rig.ports), a_deployment(desired="m9", candidate="m1")), TRUE
    )


async def test_a_missing_model_fails_at_once(rig: ControlRig) -> None:
    expect_condition(
        await act(AssetsPrepared(rig.ports), a_deployment(candidate="m1")),
        FALSE,
        "ModelNotFound",
        says="spec.desired_revision: Model ns/m1 not found",
    )


async def test_a_missing_artifact_fails_at_once(rig: ControlRig) -> None:
    await rig.store.create(a_model("m1"))
    rig.artifacts.missing.add("file:///models/m1/")

    expect_condition(
        await act(AssetsPrepared(rig.ports), a_deployment(candidate="m1")),
        FALSE,
        "ArtifactNotFound",
        says="file:///models/m1/",
    )


async def test_a_lookup_that_fails_is_retried_until_the_budget_is_spent(rig: ControlRig) -> None:
    await rig.store.create(a_model("m1"))
    rig.artifacts.fail_reads = Unavailable("storage away")
    deployment = a_deployment(candidate="m1")
    actor = AssetsPrepared(rig.ports)

    expect_condition(await act(actor, deployment), UNKNOWN, "ModelResolutionFailed")
    rig.advance(BUDGET_S - 1)
    expect_condition(await act(actor, deployment), UNKNOWN, "ModelResolutionFailed")
    rig.advance(1)
    condition = await act(actor, deployment)

    expect_condition(condition, FALSE, "ModelResolutionFailed")
    assert condition.message == (
        "ModelResolutionFailed: Model m1: spec.deployable_artifact_uri: storage away "
        "(still failing after 15m)"
    )


async def test_placement_records_the_serving_clusters_in_spec_order(rig: ControlRig) -> None:
    await a_stored_server(rig, c2=SERVING, c1=SERVING)
    deployment = a_deployment(candidate="m1")
    actor = PlacementPrepared(rig.ports)

    expect_condition(await look(actor, deployment), UNKNOWN, "SnapshotMissing")
    expect_condition(
        await act(actor, deployment), UNKNOWN, "AnnotationWritten", says="recorded c2, c1"
    )
    expect_condition(await look(actor, deployment), TRUE)
    assert [target.cluster_id for target in snapshot_of(deployment)] == ["c2", "c1"]
    assert deployment.metadata.annotations[PLACED_ON] == "is"


async def test_placement_is_frozen_for_the_rest_of_the_rollout(rig: ControlRig) -> None:
    await a_stored_server(rig, c1=SERVING, c2=SERVING)
    deployment = a_deployment(candidate="m1")
    actor = PlacementPrepared(rig.ports)
    await act(actor, deployment)
    server = await rig.server()
    server.status.cluster_statuses[1].state = FAILED
    await rig.store.update_status(server)

    expect_condition(await act(actor, deployment), TRUE)
    assert [target.cluster_id for target in snapshot_of(deployment)] == ["c1", "c2"]


async def test_an_older_rollouts_snapshot_does_not_count(rig: ControlRig) -> None:
    await a_stored_server(rig, c1=SERVING, c2=SERVING)
    deployment = a_deployment(candidate="m2", current="m1", placed=["c1"])
    actor = PlacementPrepared(rig.ports)

    expect_condition(await look(actor, deployment), UNKNOWN, "SnapshotMissing")
    await act(actor, deployment)

    assert [target.cluster_id for target in snapshot_of(deployment)] == ["c1", "c2"]


async def test_placement_is_made_again_when_the_annotation_was_lost(rig: ControlRig) -> None:
    await a_stored_server(rig, c1=SERVING)
    deployment = a_deployment(candidate="m1")
    actor = PlacementPrepared(rig.ports)
    await act(actor, deployment)
    deployment.metadata.annotations.clear()

    expect_condition(await act(actor, deployment), UNKNOWN, "AnnotationWritten")
    assert [target.cluster_id for target in snapshot_of(deployment)] == ["c1"]


@pytest.mark.parametrize("coming", [CREATING, v2.INFERENCE_SERVER_STATE_INVALID])
async def test_placement_waits_for_clusters_that_are_coming_up(
    rig: ControlRig, coming: "v2.InferenceServerState"
) -> None:
    await a_stored_server(rig, c1=SERVING, c2=coming)
    deployment = a_deployment(candidate="m1")

    expect_condition(
        await act(PlacementPrepared(rig.ports), deployment),
        UNKNOWN,
        "NoClusterServing",
        says="waiting for clusters to serve: c2",
    )
    assert snapshot_of(deployment) == ()


async def test_placement_takes_what_serves_after_half_the_budget(rig: ControlRig) -> None:
    await a_stored_server(rig, c1=SERVING, c2=CREATING)
    deployment = a_deployment(candidate="m1")
    await act(PlacementPrepared(rig.ports), deployment)
    rig.advance(BUDGET_S / 2)

    await act(PlacementPrepared(rig.ports), deployment)

    assert [target.cluster_id for target in snapshot_of(deployment)] == ["c1"]


async def test_placement_does_not_wait_for_a_failed_cluster(rig: ControlRig) -> None:
    await a_stored_server(rig, c1=SERVING, c2=FAILED)
    deployment = a_deployment(candidate="m1")

    await act(PlacementPrepared(rig.ports), deployment)

    assert [target.cluster_id for target in snapshot_of(deployment)] == ["c1"]


async def test_no_serving_cluster_fails_only_after_the_budget(rig: ControlRig) -> None:
    await a_stored_server(rig, c1=FAILED)
    deployment = a_deployment(candidate="m1")
    actor = PlacementPrepared(rig.ports)

    expect_condition(
        await act(actor, deployment), UNKNOWN, "NoClusterServing", says="every one has failed"
    )
    rig.advance(BUDGET_S)
    expect_condition(await act(actor, deployment), FALSE, "NoClusterServing", says="after 15m")


async def test_placement_retries_a_server_that_cannot_be_read(rig: ControlRig) -> None:
    expect_condition(
        await act(PlacementPrepared(rig.ports), a_deployment(candidate="m1")),
        UNKNOWN,
        "InferenceServerNotFound",
        says="InferenceServer ns/is not found",
    )


async def test_the_clock_of_a_step_survives_in_its_condition(rig: ControlRig) -> None:
    deployment = a_deployment()
    first = await act(Validated(rig.ports), deployment)
    started = read_progress(first).started_at
    rig.advance(100)

    second = await act(Validated(rig.ports), deployment)

    assert read_progress(second).started_at == started == rig.ports.now_s() - 100
    assert Validated(rig.ports).due_in_s(deployment, second) == BUDGET_S - 100
