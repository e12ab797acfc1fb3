"""`maserve predict`, `describe`, `logs`, and the program itself."""

import json
from pathlib import Path

import pytest

import maserve as package
from maserve.base.keys import Key
from maserve.host.http import Answer
from maserve.testing.clock import EPOCH
from maserve.testing.command_line import CommandLine
from maserve.wire import api, ext, meta, v2, wkt

START = int(EPOCH.timestamp())
KEY = Key("default", "digits")


@pytest.fixture
def maserve() -> CommandLine:
    made = CommandLine()
    made.api.put(a_deployment())
    return made


def a_deployment() -> v2.Deployment:
    return v2.Deployment(
        metadata=meta.ObjectMeta(
            name="digits",
            namespace="default",
            generation=3,
            creationTimestamp=wkt.Timestamp(seconds=START - 180),
            annotations={"deployment.rollout.count": "1"},
        ),
        spec=v2.DeploymentSpec(
            desired_revision=api.ResourceIdentifier(name="digits-v2"),
            inference_server=api.ResourceIdentifier(name="digits-server"),
            strategy=v2.DeploymentStrategy(rolling=v2.RollingUpdate()),
        ),
        status=v2.DeploymentStatus(
            stage=v2.DEPLOYMENT_STAGE_PLACEMENT,
            state=v2.DEPLOYMENT_STATE_HEALTHY,
            candidate_revision=api.ResourceIdentifier(name="digits-v2"),
            current_revision=api.ResourceIdentifier(name="digits-v1"),
            conditions=[
                api.Condition(
                    type="Validated",
                    status="CONDITION_STATUS_TRUE",
                    last_updated_timestamp=START - 10,
                ),
                api.Condition(
                    type="CanaryRolloutComplete-c1",
                    status="CONDITION_STATUS_UNKNOWN",
                    reason="CanaryLoading",
                    message="digits-v2 is loading on r-0",
                    last_updated_timestamp=START - 5,
                ),
            ],
        ),
    )


def a_view() -> ext.DescribeResponse:
    replica = ext.ReplicaView(
        name="r-0",
        state="RUNNING",
        ready=True,
        pid=42,
        address="127.0.0.1:9000",
        models=[
            ext.ModelView(name="digits-v1", state="READY"),
            ext.ModelView(name="digits-v2", state="FAILED", reason="no\nfile"),
        ],
    )
    cluster = ext.ClusterView(
        cluster_id="c1",
        state="SERVING",
        endpoint="http://127.0.0.1:8000",
        replicas=[replica],
        entries=[
            ext.EntryView(
                name="digits-v1",
                storage_path="file:///m",
                deployment_name="digits",
                phase="serving",
            )
        ],
    )
    route = ext.RouteView(
        name="digits-server-traffic",
        cluster_id="c1",
        match_path="/cluster/digits-server/digits",
        rewrite_path="/v2/models/digits-v1",
        target="digits-server-inference-service",
        live=True,
    )
    event = ext.Event(
        type="Normal",
        reason="StageChange",
        message="from A to B",
        count=2,
        last_time=wkt.Timestamp(seconds=START - 3),
    )
    broken = ext.ClusterView(cluster_id="c2", error="unreachable")
    return ext.DescribeResponse(clusters=[cluster, broken], routes=[route], events=[event])


DESCRIBED = """\
Deployment default/digits
  stage        PLACEMENT
  state        HEALTHY
  desired      digits-v2
  candidate    digits-v2
  current      digits-v1
  server       digits-server
  strategy     rolling
  why          CanaryRolloutComplete-c1 UNKNOWN CanaryLoading: digits-v2 is loading on r-0
  generation   3
  annotation   deployment.rollout.count=1
  age          3m

Conditions
  TYPE                       STATUS    REASON          AGE   MESSAGE
  Validated                  TRUE      -               10s   -
  CanaryRolloutComplete-c1   UNKNOWN   CanaryLoading   5s    digits-v2 is loading on r-0

Cluster c1
  state      SERVING
  endpoint   http://127.0.0.1:8000
  REPLICA   STATE     READY   PID   ADDRESS          RESTARTS   MODELS                                        REASON
  r-0       RUNNING   yes     42    127.0.0.1:9000   0          digits-v1 READY, digits-v2 FAILED (no file)   -
  WANTED MODEL   PHASE     CANARY ON   DEPLOYMENT   ARTIFACT
  digits-v1      serving   -           digits       file:///m

Cluster c2
  error   unreachable

Routes
  ROUTE                   CLUSTER   PATH                            BECOMES                TARGET                            LIVE
  digits-server-traffic   c1        /cluster/digits-server/digits   /v2/models/digits-v1   digits-server-inference-service   yes

Events
  AGE   TYPE     REASON        COUNT   MESSAGE
  3s    Normal   StageChange   2       from A to B
"""  # noqa: E501 - tables are as wide as what they show


def test_describe_answers_why_it_does_not_move(maserve: CommandLine) -> None:
    maserve.api.views[KEY] = a_view()
    result = maserve("describe", "deployment", "digits")
    assert result.exit_code == 0
    assert result.stdout == DESCRIBED


def test_describe_shows_what_failed_before_a_rollback(maserve: CommandLine) -> None:
    deployment = a_deployment()
    failed = api.Condition(type="Validated", status="CONDITION_STATUS_FALSE", reason="NoServer")
    deployment.status.conditions_snapshot.append(failed)
    maserve.api.put(deployment)
    shown = maserve("describe", "deployment", "digits").stdout
    assert "Conditions of the last attempt\n" in shown
    assert "Validated   FALSE    NoServer" in shown


def test_describe_shows_a_servers_conditions_in_each_cluster(maserve: CommandLine) -> None:
    status = v2.ClusterTargetStatus(
        cluster_id="c1",
        conditions=[api.Condition(type="HealthCheck", status="CONDITION_STATUS_TRUE")],
    )
    server = v2.InferenceServer(
        metadata=meta.ObjectMeta(name="s", namespace="default"),
        spec=v2.InferenceServerSpec(backend_type=v2.BACKEND_TYPE_TRITON),
        status=v2.InferenceServerStatus(cluster_statuses=[status]),
    )
    maserve.api.put(server)
    shown = maserve("describe", "inferenceserver", "s").stdout
    assert "  backend    TRITON\n" in shown
    assert "Conditions in c1\n" in shown


@pytest.fixture
def request_file(tmp_path: Path) -> str:
    file = tmp_path / "request.json"
    file.write_text('{"inputs": []}')
    return str(file)


def test_predict_asks_the_gateway_under_server_and_deployment(
    maserve: CommandLine, request_file: str
) -> None:
    maserve.gateway.answer = Answer(status=200, body=b'{"model_name": "digits-v1"}')
    result = maserve("predict", "digits", "-f", request_file, "--gateway-address", "127.0.0.1:9")
    assert (result.exit_code, json.loads(result.stdout)) == (0, {"model_name": "digits-v1"})
    url = "http://127.0.0.1:9/digits-server/digits/infer"
    assert maserve.gateway.requests == [(url, b'{"inputs": []}')]


def test_predict_reads_stdin_and_the_environment(maserve: CommandLine) -> None:
    maserve.gateway.answer = Answer(status=200, body=b"{}")
    environment = {"MASERVE_GATEWAY_ADDRESS": "127.0.0.1:8"}
    maserve("predict", "digits", "-f", "-", stdin="{}", environment=environment)
    assert maserve.gateway.requests[0][0].startswith("http://127.0.0.1:8/")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (None, "error: cannot reach the gateway at 127.0.0.1:8880: POST"),
        (
            Answer(status=404, body=b""),
            "error: no model answered: HTTP 404; the stage is PLACEMENT  CanaryRolloutComplete-c1",
        ),
        (
            Answer(status=503, body=b"no healthy upstream"),
            "error: no model answered: HTTP 503 no healthy upstream; the stage is PLACEMENT",
        ),
        (
            Answer(status=400, body=b'{"error": "unexpected shape"}'),
            (
                "error: the request was refused: HTTP 400 unexpected shape; mend the request, or "
                "`maserve logs digits-server -n default --process engine` may tell more"
            ),
        ),
    ],
    ids=["unreachable", "no route", "no replica", "bad request"],
)
def test_a_prediction_that_fails_says_what_to_look_at(
    maserve: CommandLine, request_file: str, answer: Answer | None, said: str
) -> None:
    maserve.gateway.answer = answer
    result = maserve("predict", "digits", "-f", request_file)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(said)
    assert len(result.stderr.splitlines()) == 1


def test_a_request_that_is_no_json_is_not_sent(maserve: CommandLine) -> None:
    result = maserve("predict", "digits", "-f", "-", stdin="{oops")
    assert (result.exit_code, maserve.gateway.requests) == (1, [])
    assert result.stderr.startswith("error: stdin is not JSON: ")


def test_logs_name_replica_and_process(maserve: CommandLine) -> None:
    maserve.api.lines = [
        ext.LogsResponse(replica="r-0", process="engine", line="started"),
        ext.LogsResponse(replica="r-1", process="model-sync", line="loaded"),
    ]
    result = maserve("logs", "s", "--cluster", "c1", "--tail", "5", "--follow")
    assert result.stdout == "r-0/engine | started\nr-1/model-sync | loaded\n"
    (sent,) = maserve.api.log_requests
    assert (sent.inference_server, sent.cluster_id, sent.tail_lines, sent.follow) == (
        "s",
        "c1",
        5,
        True,
    )


def test_logs_of_a_silent_server_say_so(maserve: CommandLine) -> None:
    result = maserve("logs", "s")
    assert (result.stdout, result.stderr) == ("", "no log lines of s\n")


def test_the_version_is_that_of_the_package(maserve: CommandLine) -> None:
    result = maserve("--version")
    assert (result.exit_code, result.stdout) == (0, f"maserve {package.__version__}\n")


def test_every_command_has_help(maserve: CommandLine) -> None:
    shown = maserve("--help").stdout
    names = ("apply", "get", "describe", "delete", "wait", "predict", "logs")
    assert [name for name in names if f"\n  {name} " not in shown] == []
    assert "2 wait timed out" in shown
