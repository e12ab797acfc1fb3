"""Create, Update and Delete as a client sees them."""

from typing import Any

import pytest

from maserve.apiserver.timestamps import SPEC_UPDATED, UPDATED
from maserve.client import Client
from maserve.testing.resources import (
    a_deployment,
    a_model,
    a_project,
    a_revision,
    an_inference_server,
)
from maserve.wire import api, meta, v2

ALL = meta.CreateOptions(dryRun=["All"])


async def created(raw: Any, model: v2.Model) -> v2.Model:
    answer = await raw("Model", "CreateModel", model=model)
    found: v2.Model = answer.model
    return found


async def test_create_answers_with_the_stored_object(raw: Any) -> None:
    model = a_model()
    model.type_meta.kind = "Nonsense"
    model.metadata.managedFields.add(manager="somebody")
    found = await created(raw, model)
    assert (found.type_meta.kind, found.type_meta.apiVersion) == ("Model", "michelangelo.api/v2")
    assert found.metadata.uid
    assert found.metadata.generation == 1
    assert found.metadata.creationTimestamp.seconds > 0
    assert not found.metadata.managedFields
    assert found.HasField("status")
    assert found.metadata.labels[UPDATED] == found.metadata.labels[SPEC_UPDATED]
    assert len(found.metadata.labels[UPDATED]) == 16


async def test_a_status_in_a_create_is_dropped(raw: Any) -> None:
    deployment = a_deployment()
    deployment.status.message = "made up"
    answer = await raw("Deployment", "CreateDeployment", deployment=deployment)
    assert not answer.deployment.status.message


async def test_update_replaces_spec_and_metadata_and_keeps_the_uid(raw: Any) -> None:
    model = await created(raw, a_model())
    model.spec.description = "better"
    model.metadata.labels["team"] = "digits"
    updated = (await raw("Model", "UpdateModel", model=model)).model
    assert updated.metadata.uid == model.metadata.uid
    assert updated.metadata.generation == 2
    assert updated.metadata.labels["team"] == "digits"
    assert int(updated.metadata.labels[SPEC_UPDATED]) > int(model.metadata.labels[SPEC_UPDATED])


async def test_an_update_of_labels_alone_keeps_the_time_of_the_spec(raw: Any) -> None:
    model = await created(raw, a_model())
    before = dict(model.metadata.labels)
    model.metadata.labels.clear()
    model.metadata.labels["team"] = "digits"
    updated = (await raw("Model", "UpdateModel", model=model)).model
    assert updated.metadata.labels[SPEC_UPDATED] == before[SPEC_UPDATED]
    assert updated.metadata.labels[UPDATED] > before[UPDATED]
    assert updated.metadata.generation == 1


async def test_an_update_that_changes_nothing_makes_no_version(raw: Any) -> None:
    model = await created(raw, a_model())
    updated = (await raw("Model", "UpdateModel", model=model)).model
    assert updated == model


@pytest.mark.parametrize("options", [["All"]])
async def test_a_dry_run_create_validates_and_stores_nothing(raw: Any, options: list[str]) -> None:
    answer = await raw("Model", "CreateModel", model=a_model(), create_options=ALL)
    assert answer.model.metadata.uid
    code, _ = await raw.refused("Model", "GetModel", name="m1", namespace="demo")
    assert code == "NOT_FOUND"


async def test_a_dry_run_update_stores_nothing(raw: Any) -> None:
    model = await created(raw, a_model())
    model.spec.description = "other"
    options = meta.UpdateOptions(dryRun=["All"])
    answer = await raw("Model", "UpdateModel", model=model, update_options=options)
    assert answer.model.spec.description == "other"
    found = (await raw("Model", "GetModel", name="m1", namespace="demo")).model
    assert not found.spec.description


async def test_a_dry_run_delete_deletes_nothing(raw: Any) -> None:
    await created(raw, a_model())
    options = meta.DeleteOptions(dryRun=["All"])
    await raw("Model", "DeleteModel", name="m1", namespace="demo", delete_options=options)
    assert (await raw("Model", "GetModel", name="m1", namespace="demo")).model.metadata.name


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["Some"], "dryRun is an unsupported strategy: 'Some'; use 'All'"),
        (["All", "All"], "dryRun allows one strategy, not several: ['All', 'All']"),
    ],
)
async def test_other_dry_runs_are_refused(raw: Any, options: list[str], text: str) -> None:
    dry = meta.CreateOptions(dryRun=options)
    code, details = await raw.refused("Model", "CreateModel", model=a_model(), create_options=dry)
    assert (code, details) == ("INVALID_ARGUMENT", text)


async def test_delete_removes_the_object(raw: Any) -> None:
    await created(raw, a_model())
    await raw("Model", "DeleteModel", name="m1", namespace="demo")
    code, _ = await raw.refused("Model", "GetModel", name="m1", namespace="demo")
    assert code == "NOT_FOUND"


async def test_finalizers_hold_a_deleted_object_until_they_are_gone(raw: Any) -> None:
    model = a_model()
    model.metadata.finalizers.append("example.com/hold")
    await created(raw, model)
    await raw("Model", "DeleteModel", name="m1", namespace="demo")
    held = (await raw("Model", "GetModel", name="m1", namespace="demo")).model
    assert held.metadata.generation == 2
    assert held.metadata.HasField("deletionTimestamp")
    assert (await raw.refused("Model", "CreateModel", model=a_model()))[0] == "ALREADY_EXISTS"
    held.metadata.finalizers.append("example.com/more")
    assert (await raw.refused("Model", "UpdateModel", model=held))[0] == "INVALID_ARGUMENT"
    del held.metadata.finalizers[:]
    await raw("Model", "UpdateModel", model=held)
    code, _ = await raw.refused("Model", "GetModel", name="m1", namespace="demo")
    assert code == "NOT_FOUND"


async def test_delete_preconditions_are_checked(raw: Any) -> None:
    model = await created(raw, a_model())
    wrong = meta.DeleteOptions(preconditions=meta.Preconditions(uid="other"))
    code, _ = await raw.refused(
        "Model", "DeleteModel", name="m1", namespace="demo", delete_options=wrong
    )
    assert code == "FAILED_PRECONDITION"
    right = meta.DeleteOptions(preconditions=meta.Preconditions(uid=model.metadata.uid))
    await raw("Model", "DeleteModel", name="m1", namespace="demo", delete_options=right)


@pytest.mark.parametrize(
    "options",
    [meta.DeleteOptions(propagationPolicy="Orphan"), meta.DeleteOptions(orphanDependents=True)],
    ids=["policy", "old spelling"],
)
async def test_a_wish_to_keep_what_is_owned_is_not_passed_over(
    raw: Any, options: meta.DeleteOptions
) -> None:
    await created(raw, a_model())
    place = {"name": "m1", "namespace": "demo", "delete_options": options}
    code, text = await raw.refused("Model", "DeleteModel", **place)
    assert (code, "what an object owns goes with it" in text) == ("INVALID_ARGUMENT", True)
    options.ClearField("orphanDependents")
    options.propagationPolicy = "Foreground"
    await raw("Model", "DeleteModel", **place)


async def test_delete_collection_deletes_what_is_selected_in_the_namespace(
    raw: Any, client: Client
) -> None:
    labelled = a_model("m2")
    labelled.metadata.labels["old"] = "yes"
    await created(raw, a_model("m1"))
    await created(raw, labelled)
    await created(raw, a_model("m1", namespace="other"))
    await raw(
        "Model",
        "DeleteModelCollection",
        namespace="demo",
        list_options=meta.ListOptions(labelSelector="old=yes"),
    )
    left = [(m.metadata.namespace, m.metadata.name) for m in await client.list(v2.Model)]
    assert left == [("demo", "m1"), ("other", "m1")]


async def test_delete_collection_stops_at_its_limit(raw: Any, client: Client) -> None:
    await created(raw, a_model("m1"))
    await created(raw, a_model("m2"))
    one = meta.ListOptions(limit=1)
    await raw("Model", "DeleteModelCollection", namespace="demo", list_options=one)
    assert [m.metadata.name for m in await client.list(v2.Model)] == ["m2"]


async def test_delete_collection_of_nothing_is_fine_but_of_everywhere_is_not(raw: Any) -> None:
    await raw("Model", "DeleteModelCollection", namespace="nowhere")
    code, _ = await raw.refused("Model", "DeleteModelCollection", namespace="")
    assert code == "NOT_FOUND"


async def test_a_project_is_its_namespace(raw: Any) -> None:
    await raw("Project", "CreateProject", project=a_project("demo"))
    other = a_project("other")
    other.metadata.namespace = "demo"
    code, text = await raw.refused("Project", "CreateProject", project=other)
    assert code == "INVALID_ARGUMENT"
    assert text == "metadata.name must be the namespace 'demo': a project is a namespace"


@pytest.mark.parametrize("name", ["default", "kube-system"])
async def test_reserved_namespaces_are_no_projects(raw: Any, name: str) -> None:
    code, _ = await raw.refused("Project", "CreateProject", project=a_project(name))
    assert code == "PERMISSION_DENIED"


async def test_a_server_that_is_there_exists_already(raw: Any) -> None:
    server = an_inference_server("s")
    await raw("InferenceServer", "CreateInferenceServer", inference_server=server)
    code, _ = await raw.refused("InferenceServer", "CreateInferenceServer", inference_server=server)
    assert code == "ALREADY_EXISTS"


async def test_the_test_namespace_may_hold_any_project(raw: Any) -> None:
    project = a_project("anything")
    project.metadata.namespace = "ma-integration-test"
    await raw("Project", "CreateProject", project=project)


async def test_a_deployment_takes_the_family_of_its_model(raw: Any) -> None:
    await created(raw, a_model("m1", family="digits"))
    answer = await raw("Deployment", "CreateDeployment", deployment=a_deployment())
    family = answer.deployment.spec.model_family
    assert (family.namespace, family.name) == ("demo", "digits")


async def test_a_deployment_of_an_unknown_or_no_model_has_no_family(raw: Any) -> None:
    answer = await raw("Deployment", "CreateDeployment", deployment=a_deployment())
    assert not answer.deployment.spec.HasField("model_family")
    idle = a_deployment("d2")
    idle.spec.ClearField("desired_revision")
    answer = await raw("Deployment", "CreateDeployment", deployment=idle)
    assert not answer.deployment.spec.HasField("model_family")


async def test_a_family_that_is_not_the_models_is_refused(raw: Any) -> None:
    await created(raw, a_model("m1", family="digits"))
    deployment = a_deployment()
    deployment.spec.model_family.CopyFrom(api.ResourceIdentifier(name="letters"))
    code, text = await raw.refused("Deployment", "CreateDeployment", deployment=deployment)
    assert code == "INVALID_ARGUMENT"
    assert text == "spec.model_family is letters, but the model's is demo/digits"


async def test_a_deployment_keeps_its_family(raw: Any) -> None:
    await created(raw, a_model("m1", family="digits"))
    await created(raw, a_model("m2", family="letters"))
    stored = (await raw("Deployment", "CreateDeployment", deployment=a_deployment())).deployment
    stored.spec.desired_revision.name = "m2"
    stored.spec.ClearField("model_family")
    code, text = await raw.refused("Deployment", "UpdateDeployment", deployment=stored)
    assert code == "INVALID_ARGUMENT"
    assert text == "spec.model_family cannot change from demo/digits to demo/letters"


@pytest.mark.parametrize("given", ["", "digits"], ids=["no family", "its family by name"])
async def test_a_deployment_of_a_model_to_come_keeps_its_family(raw: Any, given: str) -> None:
    await created(raw, a_model("m1", family="digits"))
    stored = (await raw("Deployment", "CreateDeployment", deployment=a_deployment())).deployment
    stored.spec.desired_revision.name = "later"
    stored.spec.model_family.Clear()
    stored.spec.model_family.name = given
    updated = (await raw("Deployment", "UpdateDeployment", deployment=stored)).deployment
    family = updated.spec.model_family
    assert (family.namespace, family.name) == ("demo", "digits")


async def test_a_deployment_without_family_gets_none_from_an_update(raw: Any) -> None:
    stored = (await raw("Deployment", "CreateDeployment", deployment=a_deployment())).deployment
    stored.spec.desired_revision.name = "later"
    updated = (await raw("Deployment", "UpdateDeployment", deployment=stored)).deployment
    assert not updated.spec.HasField("model_family")


async def test_a_model_names_its_environment(raw: Any) -> None:
    model = await created(raw, a_model())
    assert model.metadata.labels["michelangelo/environment"] == "unspecified"
    model.metadata.labels["michelangelo/environment"] = "production"
    updated = (await raw("Model", "UpdateModel", model=model)).model
    assert updated.metadata.labels["michelangelo/environment"] == "production"


async def test_an_immutable_revision_stays_what_it_is(raw: Any) -> None:
    revision = a_revision()
    revision.metadata.annotations["michelangelo/Immutable"] = "true"
    stored = (await raw("Revision", "CreateRevision", revision=revision)).revision
    other = type(stored).FromString(stored.SerializeToString())
    other.spec.revision_id = "2"
    code, text = await raw.refused("Revision", "UpdateRevision", revision=other)
    assert (code, text) == (
        "INVALID_ARGUMENT",
        "spec cannot be changed: the revision is immutable",
    )
    other = type(stored).FromString(stored.SerializeToString())
    other.metadata.annotations.clear()
    assert (await raw.refused("Revision", "UpdateRevision", revision=other))[0] == (
        "INVALID_ARGUMENT"
    )
    stored.metadata.labels["kept"] = "yes"
    await raw("Revision", "UpdateRevision", revision=stored)


async def test_a_revision_that_is_not_marked_may_change(raw: Any) -> None:
    stored = (await raw("Revision", "CreateRevision", revision=a_revision())).revision
    stored.spec.revision_id = "2"
    await raw("Revision", "UpdateRevision", revision=stored)


async def test_an_inference_server_is_stored(raw: Any) -> None:
    server = an_inference_server(clusters=("c1", "c2"))
    answer = await raw("InferenceServer", "CreateInferenceServer", inference_server=server)
    assert len(answer.inference_server.spec.cluster_targets) == 2
