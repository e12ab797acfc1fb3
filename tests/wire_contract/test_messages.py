"""Messages behave as those of protoc's modules do."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime

import pytest
from google.protobuf import json_format

from maserve.wire import (
    POOL,
    api,
    core,
    ext,
    find_message,
    intstr,
    meta,
    resource,
    services,
    v2,
    wkt,
)


def a_deployment() -> v2.Deployment:
    detail = wkt.Any()
    detail.Pack(wkt.StringValue(value="why"))
    condition = api.Condition(
        type="Validated", status=api.CONDITION_STATUS_TRUE, metadata=detail, observed_generation=2
    )
    return v2.Deployment(
        type_meta=meta.TypeMeta(kind="Deployment", apiVersion="michelangelo.api/v2"),
        metadata=meta.ObjectMeta(name="d", namespace="n", labels={"a": "b"}, generation=2),
        spec=v2.DeploymentSpec(
            desired_revision=api.ResourceIdentifier(namespace="n", name="m2"),
            inference_server=api.ResourceIdentifier(namespace="n", name="s"),
            strategy=v2.DeploymentStrategy(rolling=v2.RollingUpdate(increment_percentage=10)),
        ),
        status=v2.DeploymentStatus(
            stage=v2.DEPLOYMENT_STAGE_VALIDATION,
            conditions=[condition],
            provider_status={"c": detail},
        ),
    )


def test_bytes_round_trip() -> None:
    before = a_deployment()
    assert v2.Deployment.FromString(before.SerializeToString()) == before


def test_unknown_fields_are_kept() -> None:
    known = a_deployment().SerializeToString(deterministic=True)
    unknown = known + b"\xa2\x06\x03new"  # field 100, a string
    message = v2.Deployment.FromString(unknown)
    message.metadata.name = "d"
    assert message.SerializeToString(deterministic=True) == unknown


def test_json_round_trip_resolves_any_in_our_pool() -> None:
    before = a_deployment()
    text = json_format.MessageToJson(before, descriptor_pool=POOL)
    assert json_format.Parse(text, v2.Deployment(), descriptor_pool=POOL) == before


def test_json_names_are_lower_camel() -> None:
    found = json_format.MessageToDict(a_deployment(), descriptor_pool=POOL)
    assert found["spec"]["desiredRevision"] == {"namespace": "n", "name": "m2"}
    assert found["status"]["stage"] == "DEPLOYMENT_STAGE_VALIDATION"


def test_pickle_round_trip() -> None:
    before = a_deployment()
    assert pickle.loads(pickle.dumps(before)) == before


def test_classes_are_one_per_name() -> None:
    assert find_message("michelangelo.api.v2.Deployment") is v2.Deployment
    assert find_message("google.protobuf.Any") is wkt.Any
    assert type(v2.Deployment().metadata) is meta.ObjectMeta


def test_find_message_refuses_unknown_names() -> None:
    with pytest.raises(KeyError):
        find_message("michelangelo.api.v2.Nope")


def test_enums_have_names_values_and_module_constants() -> None:
    assert v2.DeploymentStage.Name(v2.DEPLOYMENT_STAGE_PLACEMENT) == "DEPLOYMENT_STAGE_PLACEMENT"
    assert v2.DeploymentStage.Value("DEPLOYMENT_STAGE_PLACEMENT") == 2
    assert v2.DeploymentStage.DEPLOYMENT_STAGE_PLACEMENT == v2.DEPLOYMENT_STAGE_PLACEMENT
    assert v2.ClusterSpec.SLAType.Name(v2.ClusterSpec.SLA_TYPE_PRODUCTION) == "SLA_TYPE_PRODUCTION"


def test_enums_may_be_evaluated_as_the_types_their_stubs_say() -> None:
    assert v2.DeploymentStage(3) == v2.DEPLOYMENT_STAGE_RESOURCE_ACQUISITION
    assert (v2.DeploymentStage | None) == (int | None)
    assert (v2.DeploymentStage | v2.DeploymentState | str) == (int | str)


def test_kubernetes_fields_tell_zero_from_absent() -> None:
    assert not meta.DeleteOptions().HasField("gracePeriodSeconds")
    sent = meta.DeleteOptions(gracePeriodSeconds=0).SerializeToString()
    assert meta.DeleteOptions.FromString(sent).HasField("gracePeriodSeconds")


def test_creation_timestamp_reads_as_time() -> None:
    made = wkt.Timestamp()
    made.FromDatetime(datetime(2026, 1, 2, tzinfo=UTC))
    time = meta.Time.FromString(made.SerializeToString())
    assert (time.seconds, time.nanos) == (made.seconds, 0)


def test_well_known_types_have_their_methods() -> None:
    struct = wkt.Struct()
    struct.update({"a": 1.5, "b": ["c"]})
    assert json_format.MessageToDict(struct, descriptor_pool=POOL) == {"a": 1.5, "b": ["c"]}
    span = wkt.Duration()
    span.FromJsonString("1.500s")
    assert span.ToTimedelta().total_seconds() == 1.5
    stamp = wkt.Timestamp(seconds=5)
    assert stamp.ToDatetime(tzinfo=UTC) == datetime.fromtimestamp(5, tz=UTC)


def test_pod_templates_reach_quantities_and_ports() -> None:
    limits = core.ResourceRequirements(limits={"cpu": resource.Quantity(string="500m")})
    probe = core.TCPSocketAction(port=intstr.IntOrString(type=0, intVal=8000))
    assert core.ResourceRequirements.FromString(limits.SerializeToString()) == limits
    assert core.TCPSocketAction.FromString(probe.SerializeToString()) == probe


def test_services_are_the_contract_and_our_extension() -> None:
    assert [service.name for service in services()] == [
        "ServingExtService",
        "ClusterService",
        "DeploymentService",
        "InferenceServerService",
        "ModelFamilyService",
        "ModelService",
        "ProjectService",
        "RayClusterService",
        "RevisionService",
    ]


def test_extension_service_streams_changes_and_logs() -> None:
    methods = POOL.FindServiceByName("maserve.v1.ServingExtService").methods
    assert {method.name: method.server_streaming for method in methods} == {
        "Watch": True,
        "Describe": False,
        "Logs": True,
    }
    change = ext.WatchResponse(type=ext.WatchResponse.TYPE_ADDED)
    change.object.Pack(a_deployment())
    assert ext.WatchResponse.FromString(change.SerializeToString()) == change
