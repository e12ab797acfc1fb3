"""`option` reads what the .proto files say about messages, fields and oneofs."""

from __future__ import annotations

import pytest

from maserve.wire import api, option, v2

VALIDATION = "michelangelo.api.validation"


def test_field_rules() -> None:
    cpu = v2.ResourceSpec.DESCRIPTOR.fields_by_name["cpu"]
    assert option(cpu, VALIDATION) == (api.Validation(min="0"),)


def test_several_rules_keep_their_order() -> None:
    name = v2.ModelFamilySpec.DESCRIPTOR.fields_by_name["name"]
    pattern = api.Validation(
        pattern=r"[a-zA-Z0-9][\w-]*", msg="must be alphanumeric, underscore or dash"
    )
    assert option(name, VALIDATION) == (pattern, api.Validation(max_length="40"))


def test_required_oneof() -> None:
    target = v2.DeploymentSpec.DESCRIPTOR.oneofs_by_name["target"]
    connection = v2.ClusterTarget.DESCRIPTOR.oneofs_by_name["connection"]
    assert option(target, "michelangelo.api.required") is True
    assert option(connection, "michelangelo.api.required") is None


def test_resource_without_settings_differs_from_no_resource() -> None:
    assert option(v2.Deployment.DESCRIPTOR, "michelangelo.api.resource") == api.ResourceDescriptor()
    assert option(v2.DeploymentSpec.DESCRIPTOR, "michelangelo.api.resource") is None


def test_resource_settings() -> None:
    assert option(v2.Model.DESCRIPTOR, "michelangelo.api.resource").immutable
    assert option(v2.ProjectSpec.DESCRIPTOR, "michelangelo.api.no_default") is True


def test_indexes() -> None:
    assert option(v2.InferenceServer.DESCRIPTOR, "michelangelo.api.index") == (
        api.IndexDescriptor(path="status.state", key="state"),
    )


def test_reference() -> None:
    revision = v2.DeploymentSpec.DESCRIPTOR.fields_by_name["desired_revision"]
    assert option(revision, "michelangelo.api.resource_reference") == api.ResourceReference(
        type="michelangelo.uber.com/Revision"
    )


def test_unset_options_of_files_and_enums() -> None:
    assert option(v2.Deployment.DESCRIPTOR.file, "michelangelo.api.group_info") is None
    assert option(v2.DeploymentStage.DESCRIPTOR, "michelangelo.api.enum_rename_to") is None
    assert option(v2.DeploymentStatus.DESCRIPTOR, "michelangelo.api.index") == ()


def test_unknown_or_misplaced_options_are_key_errors() -> None:
    with pytest.raises(KeyError):
        option(v2.Deployment.DESCRIPTOR, "michelangelo.api.nope")
    with pytest.raises(KeyError):
        option(v2.Deployment.DESCRIPTOR, VALIDATION)
