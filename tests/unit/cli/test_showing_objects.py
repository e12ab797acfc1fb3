"""`maserve get`: tables, other forms, watching."""

import json

import pytest
import yaml

from maserve.base.errors import Expired
from maserve.client import ChangeType
from maserve.resource import Resource
from maserve.testing.clock import EPOCH
from maserve.testing.command_line import CommandLine, a_change
from maserve.wire import api, meta, v2, wkt

START = int(EPOCH.timestamp())


@pytest.fixture
def maserve() -> CommandLine:
    return CommandLine()


def a_meta(name: str, *, age_s: int = 60, namespace: str = "default") -> meta.ObjectMeta:
    created = wkt.Timestamp(seconds=START - age_s)
    return meta.ObjectMeta(name=name, namespace=namespace, creationTimestamp=created)


def a_deployment(name: str, stage: str = "ROLLOUT_COMPLETE", **place: str) -> v2.Deployment:
    return v2.Deployment(
        metadata=a_meta(name, **place),  # type: ignore[arg-type]  # only a namespace is given
        spec=v2.DeploymentSpec(
            desired_revision=api.ResourceIdentifier(name="digits-v2"),
            inference_server=api.ResourceIdentifier(name="digits-server"),
        ),
        status=v2.DeploymentStatus(
            stage=f"DEPLOYMENT_STAGE_{stage}",
            state=v2.DEPLOYMENT_STATE_HEALTHY,
            current_revision=api.ResourceIdentifier(name="digits-v1"),
        ),
    )


def a_server() -> v2.InferenceServer:
    targets = [v2.ClusterTarget(cluster_id=f"compute-{number}") for number in (1, 2)]
    return v2.InferenceServer(
        metadata=a_meta("digits-server", age_s=7200),
        spec=v2.InferenceServerSpec(
            init_spec=v2.InitSpec(num_instances=2), cluster_targets=targets
        ),
        status=v2.InferenceServerStatus(
            state=v2.INFERENCE_SERVER_STATE_CREATING,
            cluster_statuses=[
                v2.ClusterTargetStatus(
                    cluster_id="compute-1", state=v2.INFERENCE_SERVER_STATE_SERVING
                ),
                v2.ClusterTargetStatus(
                    cluster_id="compute-2", state=v2.INFERENCE_SERVER_STATE_CREATING
                ),
            ],
        ),
    )


def a_model() -> v2.Model:
    return v2.Model(
        metadata=a_meta("digits-v1"),
        spec=v2.ModelSpec(
            package_type=v2.DEPLOYABLE_MODEL_PACKAGE_TYPE_TRITON,
            deployable_artifact_uri=["s3://models/digits-v1", "s3://other"],
        ),
    )


TABLES: list[tuple[str, Resource, list[str]]] = [
    (
        "deployment",
        a_deployment("digits"),
        [
            "NAME     STAGE              STATE     DESIRED     CURRENT     SERVER          AGE",
            "digits   ROLLOUT_COMPLETE   HEALTHY   digits-v2   digits-v1   digits-server   60s",
        ],
    ),
    (
        "inference_server",
        a_server(),
        [
            "NAME            STATE      REPLICAS        CLUSTERS                  AGE",
            "digits-server   CREATING   2 per cluster   1/2 compute-1,compute-2   2h",
        ],
    ),
    (
        "Models",
        a_model(),
        [
            "NAME        PACKAGE   ARTIFACT                     AGE",
            "digits-v1   TRITON    s3://models/digits-v1 (+1)   60s",
        ],
    ),
    (
        "project",
        v2.Project(
            metadata=a_meta("digits"),
            spec=v2.ProjectSpec(tier=4, owner=v2.OwnerInfo(owners=["a", "b"]), description="Reads"),
        ),
        [
            "NAME     TIER   OWNERS   DESCRIPTION   AGE",
            "digits   4      a,b      Reads         60s",
        ],
    ),
    (
        "modelfamily",
        v2.ModelFamily(metadata=a_meta("f"), spec=v2.ModelFamilySpec(name="digits")),
        ["NAME   FAMILY   DESCRIPTION   AGE", "f      digits   -             60s"],
    ),
    (
        "revision",
        v2.Revision(
            metadata=a_meta("r"),
            spec=v2.RevisionSpec(
                base_type=meta.TypeMeta(kind="Deployment"),
                base_resource=api.ResourceIdentifier(name="digits"),
                source="rollout",
            ),
        ),
        [
            "NAME   KIND         OBJECT   SOURCE    OWNER   AGE",
            "r      Deployment   digits   rollout   -       60s",
        ],
    ),
    (
        "cluster",
        v2.Cluster(
            metadata=a_meta("c"),
            spec=v2.ClusterSpec(region="here"),
            status=v2.ClusterStatus(
                status_conditions=[api.Condition(type="Ready", status="CONDITION_STATUS_TRUE")]
            ),
        ),
        ["NAME   REGION   READY   AGE", "c      here     TRUE    60s"],
    ),
    (
        "raycluster",
        v2.RayCluster(metadata=a_meta("r")),
        ["NAME   STATE   AGE", "r      -       60s"],
    ),
]


@pytest.mark.parametrize(("kind", "resource", "lines"), TABLES, ids=[kind for kind, _, _ in TABLES])
def test_each_kind_has_its_columns(
    maserve: CommandLine, kind: str, resource: Resource, lines: list[str]
) -> None:
    maserve.api.put(resource)
    result = maserve("get", kind)
    assert (result.exit_code, result.stdout.splitlines()) == (0, lines)


def test_all_namespaces_are_named(maserve: CommandLine) -> None:
    maserve.api.put(a_deployment("one"), a_deployment("two", namespace="other"))
    rows = maserve("get", "deployments", "-A").stdout.splitlines()
    assert [row.split()[:2] for row in rows] == [
        ["NAMESPACE", "NAME"],
        ["default", "one"],
        ["other", "two"],
    ]


def test_one_namespace_hides_the_others(maserve: CommandLine) -> None:
    maserve.api.put(a_deployment("one"), a_deployment("two", namespace="other"))
    assert maserve("get", "deployment", "-n", "other", "-o", "name").stdout == "deployment/two\n"


def test_nothing_found_is_no_error_and_no_output(maserve: CommandLine) -> None:
    result = maserve("get", "deployment")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "no Deployment in namespace default (-A: all)\n"


def test_a_missing_name_is_an_error_with_the_next_step(maserve: CommandLine) -> None:
    result = maserve("get", "deployment", "nobody")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == (
        "error: Deployment default/nobody not found; "
        "`maserve get Deployment -A` lists those there are\n"
    )


def test_an_unknown_kind_names_the_known_ones(maserve: CommandLine) -> None:
    result = maserve("get", "pod")
    assert result.exit_code == 2
    assert result.stderr.startswith("error: unknown kind 'pod'; known kinds: Project, ModelFamily")


def test_json_of_one_object_is_the_object(maserve: CommandLine) -> None:
    maserve.api.put(a_deployment("digits"))
    shown = json.loads(maserve("get", "deployment", "digits", "-o", "json").stdout)
    assert (shown["kind"], shown["status"]["stage"]) == (
        "Deployment",
        "DEPLOYMENT_STAGE_ROLLOUT_COMPLETE",
    )


def test_yaml_can_be_applied_again(maserve: CommandLine) -> None:
    maserve.api.put(a_deployment("one"), a_deployment("two"))
    shown = maserve("get", "deployment", "-o", "yaml").stdout
    again = CommandLine()
    assert again("apply", "-f", "-", stdin=shown).stdout.splitlines() == [
        "Deployment default/one created",
        "Deployment default/two created",
    ]


def test_json_of_several_objects_is_a_list(maserve: CommandLine) -> None:
    maserve.api.put(a_deployment("one"), a_deployment("two"))
    shown = json.loads(maserve("get", "deployment", "-o", "json").stdout)
    assert (shown["kind"], len(shown["items"])) == ("DeploymentList", 2)


def test_yaml_has_one_document_an_object(maserve: CommandLine) -> None:
    maserve.api.put(a_deployment("one"), a_deployment("two"))
    shown = list(yaml.safe_load_all(maserve("get", "deployment", "-o", "yaml").stdout))
    assert [body["metadata"]["name"] for body in shown] == ["one", "two"]
    assert list(shown[0])[:2] == ["apiVersion", "kind"]


def test_watching_goes_on_with_each_change(maserve: CommandLine) -> None:
    maserve.api.put(a_deployment("digits"))
    gone = a_deployment("digits", "CLEAN_UP_COMPLETE")
    maserve.api.steps = [
        a_change(ChangeType.MODIFIED, a_deployment("digits", "PLACEMENT")),
        a_change(ChangeType.DELETED, gone),
        KeyboardInterrupt(),
    ]
    result = maserve("get", "deployment", "--watch")
    lines = result.stdout.splitlines()
    assert result.exit_code == 130
    assert [line.split()[1] for line in lines] == [
        "STAGE",
        "ROLLOUT_COMPLETE",
        "PLACEMENT",
        "CLEAN_UP_COMPLETE",
    ]
    assert lines[2].index("HEALTHY") == lines[1].index("HEALTHY")
    assert lines[3].endswith("(deleted)")


def test_watching_as_json_writes_one_line_a_change(maserve: CommandLine) -> None:
    maserve.api.put(a_deployment("digits"))
    maserve.api.steps = [KeyboardInterrupt()]
    (line,) = maserve("get", "deployment", "-w", "-o", "json").stdout.splitlines()
    assert json.loads(line)["metadata"]["name"] == "digits"


def test_watching_that_fell_behind_says_what_to_do(maserve: CommandLine) -> None:
    maserve.api.steps = [Expired("changes are forgotten")]
    result = maserve("get", "deployment", "-w")
    assert result.exit_code == 1
    assert result.stderr == "error: changes are forgotten; run the command again\n"


def test_a_name_in_all_namespaces_is_refused(maserve: CommandLine) -> None:
    assert "-n instead of -A" in maserve("get", "deployment", "x", "-A").stderr
