import math
from typing import Any

import pytest

from maserve.base.errors import Invalid
from maserve.resource import (
    API_VERSION,
    check_readable,
    from_json,
    from_shown_json,
    kind_of_json,
    list_unknown,
    to_json,
    to_shown_json,
)
from maserve.wire import v2, wkt

NEWER = b"\xf8\x3f\x01"
"""Field 1023 with value 1, which no message has."""


def problems_of(kind: Any, spec: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(Invalid) as caught:
        from_json(kind, {"apiVersion": API_VERSION, "kind": kind.DESCRIPTOR.name, "spec": spec})
    return {each.field: each.text for each in caught.value.problems}


def read_spec(kind: Any, spec: dict[str, Any]) -> Any:
    data = {"apiVersion": API_VERSION, "kind": kind.DESCRIPTOR.name, "spec": spec}
    return from_json(kind, data).spec


def a_deployment() -> v2.Deployment:
    deployment = v2.Deployment()
    meta = deployment.metadata
    meta.namespace, meta.name, meta.generation = "prod", "d", 2
    meta.creationTimestamp.seconds = 1777500000
    meta.labels["michelangelo/UpdateTimestamp"] = "1777500000000000"
    meta.ownerReferences.add(
        apiVersion=API_VERSION, kind="Project", name="p", uid="u", controller=False
    )
    deployment.spec.desired_revision.name = "bert-cola-37"
    deployment.spec.inference_server.name = "is"
    deployment.spec.strategy.rolling.SetInParent()
    deployment.spec.definition.type = v2.TARGET_TYPE_INFERENCE_SERVER
    deployment.spec.resource_links["b"] = "2"
    deployment.spec.resource_links["a"] = "1"
    deployment.status.conditions.add(type="StateSteady", status=1, last_updated_timestamp=1777)
    return deployment


def test_a_resource_is_written_as_the_reference_stores_it() -> None:
    assert to_json(a_deployment()) == {
        "apiVersion": "michelangelo.api/v2",
        "kind": "Deployment",
        "metadata": {
            "name": "d",
            "namespace": "prod",
            "generation": 2,
            "creationTimestamp": "2026-04-29T22:00:00Z",
            "labels": {"michelangelo/UpdateTimestamp": "1777500000000000"},
            "ownerReferences": [
                {
                    "apiVersion": "michelangelo.api/v2",
                    "kind": "Project",
                    "name": "p",
                    "uid": "u",
                    "controller": False,
                }
            ],
        },
        "spec": {
            "desiredRevision": {"name": "bert-cola-37"},
            "inferenceServer": {"name": "is"},
            "strategy": {"rolling": {}},
            "definition": {"type": "TARGET_TYPE_INFERENCE_SERVER"},
            "resourceLinks": {"a": "1", "b": "2"},
        },
        "status": {
            "conditions": [
                {
                    "type": "StateSteady",
                    "status": "CONDITION_STATUS_TRUE",
                    "lastUpdatedTimestamp": "1777",
                }
            ]
        },
    }


def test_what_was_written_reads_back_the_same() -> None:
    deployment = a_deployment()
    deployment.type_meta.kind, deployment.type_meta.apiVersion = "Deployment", API_VERSION
    assert from_json(v2.Deployment, to_json(deployment)) == deployment
    check_readable(deployment)


def test_empty_metadata_of_a_go_client_is_left_out() -> None:
    model = v2.Model()
    model.metadata.name, model.metadata.generateName, model.metadata.generation = "m", "", 0
    model.metadata.creationTimestamp.SetInParent()
    model.metadata.deletionGracePeriodSeconds = 0
    assert to_json(model)["metadata"] == {"name": "m", "deletionGracePeriodSeconds": 0}


def test_names_of_proto_and_json_are_read() -> None:
    spec = read_spec(
        v2.Deployment,
        {"desired_revision": {"name": "m"}, "inferenceServer": {"name": "s"}, "selector": None},
    )
    assert (spec.desired_revision.name, spec.inference_server.name) == ("m", "s")
    assert not spec.HasField("selector")


@pytest.mark.parametrize("value", ["TARGET_TYPE_OFFLINE", 2])
def test_enums_are_read_by_name_or_number(value: object) -> None:
    assert read_spec(v2.Deployment, {"definition": {"type": value}}).definition.type == 2


def test_an_enum_value_of_a_newer_version_stays_a_number() -> None:
    deployment = v2.Deployment()
    deployment.spec.definition.type = 77  # type: ignore[assignment]  # proto3 enums are open
    assert to_json(deployment)["spec"] == {"definition": {"type": 77}}
    check_readable(deployment)


@pytest.mark.parametrize(
    ("spec", "field", "text"),
    [
        ({"desiredRevison": {}}, "spec.desiredRevison", "did you mean desiredRevision?"),
        ({"definition": {"type": "OFFLINE"}}, "spec.definition.type", "known: TARGET_TYPE_INV"),
        ({"definition": {"subType": 5}}, "spec.definition.subType", "put it in quotes"),
        ({"definition": []}, "spec.definition", "must be an object of TargetDefinition"),
        ({"shadowSpec": {"enabled": "yes"}}, "spec.shadowSpec.enabled", "true or false"),
        ({"shadowSpec": {"enabled": 1}}, "spec.shadowSpec.enabled", "true or false"),
        ({"shadowSpec": {"duration": "5m"}}, "spec.shadowSpec.duration", "such as 1.5s"),
        ({"shadowSpec": {"metrics": {}}}, "spec.shadowSpec.metrics", "must be a list"),
        ({"shadowSpec": {"metrics": [1]}}, "spec.shadowSpec.metrics[0]", "must be an object"),
        (
            {"strategy": {"rolling": {"incrementPercentage": 1.5}}},
            "spec.strategy.rolling.incrementPercentage",
            "must be a whole number",
        ),
        (
            {"strategy": {"rolling": {"incrementPercentage": 2**31}}},
            "spec.strategy.rolling.incrementPercentage",
            "must be in the range",
        ),
        (
            {"strategy": {"rolling": {"incrementPercentage": True}}},
            "spec.strategy.rolling.incrementPercentage",
            "must be a number",
        ),
        (
            {"strategy": {"rolling": {"incrementPercentage": float("inf")}}},
            "spec.strategy.rolling.incrementPercentage",
            "must be a whole number",
        ),
        ({"strategy": {"rolling": {}, "blast": {}}}, "spec.strategy.blast", "with rolling"),
        (
            {"definition": {"sub_type": "a", "subType": "b"}},
            "spec.definition.subType",
            "together with sub_type",
        ),
        ({"resourceLinks": {"a": 1}}, "spec.resourceLinks[a]", "must be a string"),
        ({"resourceLinks": []}, "spec.resourceLinks", "must be an object"),
    ],
)
def test_what_is_wrong_is_told_with_its_path(spec: dict[str, Any], field: str, text: str) -> None:
    found = problems_of(v2.Deployment, spec)
    assert list(found) == [field]
    assert text in found[field]


def test_every_problem_is_told() -> None:
    found = problems_of(v2.Deployment, {"a": 1, "definition": {"type": "X"}, "strategy": {"b": 1}})
    assert list(found) == ["spec.a", "spec.definition.type", "spec.strategy.b"]


def test_wrong_kind_and_version_are_told() -> None:
    with pytest.raises(Invalid) as caught:
        from_json(v2.Model, {"apiVersion": "v1", "kind": "Pod"})
    assert [each.field for each in caught.value.problems] == ["apiVersion", "kind"]


@pytest.mark.parametrize(
    ("data", "field"),
    [
        ({"apiVersion": API_VERSION}, "kind"),
        ({"apiVersion": API_VERSION, "kind": "Pod"}, "kind"),
        ({"apiVersion": API_VERSION, "kind": "deployments"}, "kind"),
        ({"apiVersion": "apps/v1", "kind": "Deployment"}, "apiVersion"),
        ({"kind": "Deployment"}, "apiVersion"),
    ],
)
def test_the_kind_of_an_object_must_be_told_right(data: dict[str, Any], field: str) -> None:
    with pytest.raises(Invalid) as caught:
        kind_of_json(data)
    assert caught.value.problems[0].field == field


def test_the_kind_of_an_object_is_found() -> None:
    assert kind_of_json({"apiVersion": API_VERSION, "kind": "Model"}) is v2.Model


@pytest.mark.parametrize(
    ("seconds", "nanos", "text"),
    [
        (0, 0, "0s"),
        (1, 500_000_000, "1.500s"),
        (-1, -1_000, "-1.000001s"),
        (0, -1, "-0.000000001s"),
        (315_576_000_000, 0, "315576000000s"),
    ],
)
def test_durations_round_trip(seconds: int, nanos: int, text: str) -> None:
    deployment = v2.Deployment()
    deployment.spec.shadow_spec.duration.seconds = seconds
    deployment.spec.shadow_spec.duration.nanos = nanos
    written = to_json(deployment)
    assert written["spec"]["shadowSpec"]["duration"] == text
    assert from_json(v2.Deployment, written).spec == deployment.spec


@pytest.mark.parametrize(("seconds", "nanos"), [(2**62, 0), (1, -1), (0, 10**9)])
def test_a_duration_that_cannot_be_read_back_is_refused(seconds: int, nanos: int) -> None:
    deployment = v2.Deployment()
    deployment.spec.shadow_spec.duration.seconds = seconds
    deployment.spec.shadow_spec.duration.nanos = nanos
    with pytest.raises(Invalid, match=r"spec\.shadowSpec\.duration"):
        check_readable(deployment)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("2026-01-31T08:30:00Z", (1769848200, 0)),
        ("2026-01-31T10:30:00.5+02:00", (1769848200, 500_000_000)),
        ("0001-01-01T00:00:00Z", (-62135596800, 0)),
        ("9999-12-31T23:59:59.999999999Z", (253402300799, 999_999_999)),
    ],
)
def test_times_are_read(given: str, expected: tuple[int, int]) -> None:
    data = {"apiVersion": API_VERSION, "kind": "Project", "status": {"lastUpdateTime": given}}
    time = from_json(v2.Project, data).status.last_update_time
    assert (time.seconds, time.nanos) == expected


@pytest.mark.parametrize(
    "given", ["2026-01-31", "2026-02-30T00:00:00Z", "0001-01-01T00:00:00+05:00", "now", 5]
)
def test_what_is_no_time_is_refused(given: object) -> None:
    data = {"apiVersion": API_VERSION, "kind": "Project", "status": {"lastUpdateTime": given}}
    with pytest.raises(Invalid, match=r"status\.lastUpdateTime"):
        from_json(v2.Project, data)


def test_a_struct_is_a_free_object() -> None:
    model = v2.Model()
    score = model.spec.quality_scores.add(value=math.nan)
    score.metadata.update({"a": [1, 2.5, None, "x", True], "b": {"c": {}}})
    written = to_json(model)["spec"]["qualityScores"][0]
    assert written == {"value": "NaN", "metadata": {"a": [1, 2.5, None, "x", True], "b": {"c": {}}}}
    check_readable(model)


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_a_struct_with_a_number_json_lacks_is_refused(number: float) -> None:
    model = v2.Model()
    model.spec.quality_scores.add().metadata.fields["a"].number_value = number
    with pytest.raises(Invalid, match=r"spec\.qualityScores\[0\]\.metadata\.a"):
        check_readable(model)


def test_a_struct_value_without_a_value_is_refused() -> None:
    model = v2.Model()
    model.spec.quality_scores.add().metadata.fields["a"].SetInParent()
    with pytest.raises(Invalid, match="has no value"):
        check_readable(model)


def test_single_precision_is_written_short() -> None:
    model = v2.Model()
    features = model.spec.feature_importance_list.add().feature_importance
    features["f"].baseline.float_value = 0.1
    written = to_json(model)["spec"]["featureImportanceList"][0]["featureImportance"]["f"]
    assert written == {"baseline": {"floatValue": 0.1}}
    check_readable(model)


def test_a_oneof_member_at_its_default_is_kept() -> None:
    model = v2.Model()
    features = model.spec.feature_importance_list.add().feature_importance
    features["f"].baseline.bool_value = False
    again = from_json(v2.Model, to_json(model))
    baseline = again.spec.feature_importance_list[0].feature_importance["f"].baseline
    assert baseline.WhichOneof("value_type") == "bool_value"


def a_pod_cluster() -> v2.RayCluster:
    cluster = v2.RayCluster()
    pod = cluster.spec.head.pod
    container = pod.spec.containers.add(name="ray")
    container.resources.limits["cpu"].string = "500m"
    probe = container.livenessProbe.handler.httpGet
    probe.port.type, probe.port.strVal = 1, "http"
    container.readinessProbe.handler.httpGet.port.intVal = 8080
    pod.spec.terminationGracePeriodSeconds = 30
    pod.spec.hostNetwork = False
    cluster.status.last_update_time.seconds = 1777500000
    return cluster


def test_embedded_kubernetes_messages_keep_their_forms() -> None:
    written = to_json(a_pod_cluster())
    spec = written["spec"]["head"]["pod"]["spec"]
    assert spec["terminationGracePeriodSeconds"] == "30"
    assert spec["hostNetwork"] is False
    container = spec["containers"][0]
    assert container["resources"] == {"limits": {"cpu": "500m"}}
    assert container["livenessProbe"]["handler"]["httpGet"]["port"] == "http"
    assert container["readinessProbe"]["handler"]["httpGet"]["port"] == 8080
    assert written["status"]["lastUpdateTime"] == "2026-04-29T22:00:00Z"
    check_readable(a_pod_cluster())


def test_what_is_no_quantity_is_refused_both_ways() -> None:
    cluster = a_pod_cluster()
    cluster.spec.head.pod.spec.containers[0].resources.limits["cpu"].string = "many"
    with pytest.raises(Invalid, match=r"limits\[cpu\] is no quantity"):
        check_readable(cluster)
    limits = {"head": {"pod": {"spec": {"containers": [{"resources": {"limits": {"cpu": "x"}}}]}}}}
    assert "is no quantity" in next(iter(problems_of(v2.RayCluster, limits).values()))


def a_condition_with(message: Any) -> v2.Deployment:
    deployment = v2.Deployment()
    deployment.status.conditions.add(type="A").metadata.Pack(message)
    return deployment


def any_of(written: dict[str, Any]) -> Any:
    return written["status"]["conditions"][0]["metadata"]


TEXT_URL = "type.googleapis.com/google.protobuf.StringValue"


def test_an_any_is_stored_as_bytes_and_shown_opened() -> None:
    deployment = a_condition_with(wkt.StringValue(value="hello"))
    assert any_of(to_json(deployment)) == {"@type": TEXT_URL, "value": "CgVoZWxsbw=="}
    assert any_of(to_shown_json(deployment)) == {"@type": TEXT_URL, "value": "hello"}
    assert from_json(v2.Deployment, to_json(deployment)).status == deployment.status
    assert from_shown_json(v2.Deployment, to_shown_json(deployment)).status == deployment.status


def test_an_any_of_our_own_messages_is_shown_by_its_fields() -> None:
    revision = v2.Revision()
    revision.spec.content.Pack(v2.DeploymentSpec(resource_links={"a": "b"}))
    shown = to_shown_json(revision)
    assert shown["spec"]["content"]["resourceLinks"] == {"a": "b"}
    assert from_shown_json(v2.Revision, shown).spec == revision.spec


def test_an_any_of_an_unknown_type_passes_in_both_forms() -> None:
    deployment = v2.Deployment()
    metadata = deployment.status.conditions.add(type="A").metadata
    metadata.type_url, metadata.value = "x/foo.Bar", b"\x00\xff"
    assert any_of(to_json(deployment)) == any_of(to_shown_json(deployment))
    assert from_shown_json(v2.Deployment, to_shown_json(deployment)).status == deployment.status


@pytest.mark.parametrize("value", [b"\xff\xff", NEWER], ids=["broken", "newer"])
def test_an_any_that_cannot_be_opened_is_shown_as_bytes(value: bytes) -> None:
    deployment = v2.Deployment()
    metadata = deployment.status.conditions.add(type="A").metadata
    metadata.type_url, metadata.value = TEXT_URL, value
    assert set(any_of(to_shown_json(deployment))) == {"@type", "@bytes"}
    assert from_shown_json(v2.Deployment, to_shown_json(deployment)).status == deployment.status
    check_readable(deployment)


@pytest.mark.parametrize(
    "given", ["text", {"value": "x"}, {"@type": "x/y", "more": 1}, {"@type": "x/y", "value": "%"}]
)
def test_a_wrong_any_is_told(given: object) -> None:
    data = {
        "apiVersion": API_VERSION,
        "kind": "Revision",
        "spec": {"content": given},
    }
    with pytest.raises(Invalid, match=r"spec\.content"):
        from_json(v2.Revision, data)


def test_unknown_fields_are_named() -> None:
    spec = v2.DeploymentSpec(model_family={"name": "f"})  # type: ignore[arg-type]  # a dict will do
    deployment = v2.Deployment()
    deployment.spec.CopyFrom(spec)
    deployment.spec.model_family.MergeFromString(NEWER)
    deployment.status.conditions.add().MergeFromString(NEWER)
    deployment.MergeFromString(NEWER)
    assert list_unknown(deployment) == (
        "#1023",
        "spec.modelFamily.#1023",
        "status.conditions[0].#1023",
    )


def test_what_is_nested_too_deeply_to_be_read_back_is_refused() -> None:
    model = v2.Model()
    value = model.spec.quality_scores.add().metadata.fields["a"]
    depth = 60
    for _ in range(depth):
        value = value.list_value.values.add()
    value.bool_value = True
    with pytest.raises(Invalid, match="nested too deeply"):
        check_readable(model)


def test_other_spellings_of_embedded_values_are_read() -> None:
    port = {"port": {"type": 1, "strVal": "http"}}
    container = {
        "name": "c",
        "resources": {"limits": {"cpu": 2}},
        "livenessProbe": {"handler": {"httpGet": port, "grpc": None}},
    }
    pod = {"spec": {"containers": [container], "terminationGracePeriodSeconds": 30}}
    spec = read_spec(v2.RayCluster, {"head": {"pod": pod}}).head.pod.spec
    assert spec.terminationGracePeriodSeconds == 30
    assert spec.containers[0].resources.limits["cpu"].string == "2"
    assert spec.containers[0].livenessProbe.handler.httpGet.port.strVal == "http"


def test_managed_fields_keep_their_raw_json() -> None:
    model = v2.Model()
    model.metadata.managedFields.add(manager="ma").fieldsV1.Raw = b'{"f:spec":{}}'
    written = to_json(model)
    assert written["metadata"]["managedFields"][0]["fieldsV1"] == {"f:spec": {}}
    check_readable(model)
    model.metadata.managedFields[0].fieldsV1.Raw = b"{"
    with pytest.raises(Invalid, match=r"managedFields\[0\]\.fieldsV1 holds what is no JSON"):
        check_readable(model)


@pytest.mark.parametrize("given", [[], "x", {"a": {"b": object()}}, {"a": math.nan}])
def test_what_is_no_struct_is_refused(given: object) -> None:
    found = problems_of(v2.Model, {"qualityScores": [{"metadata": given}]})
    assert next(iter(found)).startswith("spec.qualityScores[0].metadata")


@pytest.mark.parametrize(
    "given", ["1e400", "inf", "abc", "", " 1", "1_0", [], True, math.inf, math.nan]
)
def test_numbers_are_read_strictly(given: object) -> None:
    found = problems_of(v2.Deployment, {"strategy": {"zonal": {"rolloutPeriodInSeconds": given}}})
    assert list(found) == ["spec.strategy.zonal.rolloutPeriodInSeconds"]


@pytest.mark.parametrize("given", ["9223372036854775807", 9223372036854775807, "-5", 5.0])
def test_large_integers_are_read_from_text_or_number(given: object) -> None:
    data = {
        "apiVersion": API_VERSION,
        "kind": "InferenceServer",
        "status": {"observedGeneration": given},
    }
    found = from_json(v2.InferenceServer, data)
    assert found.status.observed_generation == int(given)  # type: ignore[call-overload]  # each is
