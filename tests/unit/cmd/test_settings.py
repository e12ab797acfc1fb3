"""The settings file: every key, every way to get one wrong."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from maserve.backends.triton import ReadinessProbe, TritonSettings
from maserve.base.errors import Invalid
from maserve.cmd.carried_over import ELSEWHERE
from maserve.cmd.settings import Settings, parse_settings

READINESS = TritonSettings().readiness_timing()


def parsed(text: str, **storage_variables: str) -> Settings:
    return parse_settings(
        text,
        source="my.yaml",
        data_dir=Path("/data"),
        api_address="127.0.0.1:1",
        gateway_address="127.0.0.1:2",
        metrics_address="127.0.0.1:3",
        storage_variables=storage_variables,
        keep_running=True,
    )


def refused(text: str, **storage_variables: str) -> list[str]:
    with pytest.raises(Invalid) as caught:
        parsed(text, **storage_variables)
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "deployment:\ninferenceServer: {}\n"])
def test_an_empty_file_or_section_is_the_defaults(text: str) -> None:
    settings = parsed(text)

    assert settings == replace(
        Settings(data_dir=Path("/data"), keep_running=True),
        api_address="127.0.0.1:1",
        gateway_address="127.0.0.1:2",
        metrics_address="127.0.0.1:3",
        triton=TritonSettings(readiness=READINESS),
    )
    assert (settings.logs.level, settings.logs.encoding) == ("info", "console")
    assert settings.rollout.model_load_timeout_s == 900
    assert settings.rollout.rollback_model_load_timeout_s == 900
    assert settings.triton.readiness_probe is ReadinessProbe.MODEL_AWARE


KEYS: list[tuple[str, Callable[[Settings], object], object]] = [
    ("logging: {level: DEBUG}", lambda s: s.logs.level, "debug"),
    ("logging: {encoding: json}", lambda s: s.logs.encoding, "json"),
    ("logging: {development: false}", lambda s: s.logs.encoding, "json"),
    (
        "inferenceServer: {triton: {readinessProbe: server}}",
        lambda s: s.triton.readiness_probe,
        ReadinessProbe.SERVER,
    ),
    (
        "inferenceServer: {triton: {probes: {startup: {periodSeconds: 7}}}}",
        lambda s: s.triton.startup.period_s,
        7,
    ),
    (
        "inferenceServer: {triton: {probes: {startup: {periodSeconds: 0}}}}",
        lambda s: s.triton.startup.period_s,
        5,
    ),
    (
        "inferenceServer: {triton: {probes: {liveness: {timeoutSeconds: 0.5}}}}",
        lambda s: s.triton.liveness.timeout_s,
        0.5,
    ),
    (
        "inferenceServer: {triton: {probes: {readiness: {failureThreshold: 9}}}}",
        lambda s: s.triton.readiness_timing().failure_threshold,
        9,
    ),
    (
        (
            "inferenceServer: {triton: {readinessProbe: server, "
            "probes: {readiness: {failureThreshold: 9}}}}"
        ),
        lambda s: s.triton.readiness_timing().timeout_s,
        5,
    ),
    (
        "inferenceServer: {triton: {drain: {preStopSeconds: 3}}}",
        lambda s: s.triton.drain.pre_stop_s,
        3,
    ),
    (
        "inferenceServer: {triton: {drain: {exitTimeoutSeconds: 4}}}",
        lambda s: s.triton.drain.exit_timeout_s,
        4,
    ),
    (
        "inferenceServer: {triton: {autoCompleteConfig: false}}",
        lambda s: s.triton.auto_complete_config,
        False,
    ),
    ("deployment: {rollout: {skipCanary: true}}", lambda s: s.rollout.skip_canary, True),
    (
        "deployment: {rollout: {modelLoadTimeout: 1h30m}}",
        lambda s: s.rollout.model_load_timeout_s,
        5400,
    ),
    (
        "deployment: {rollout: {modelLoadTimeout: 0}}",
        lambda s: s.rollout.model_load_timeout_s,
        900,
    ),
    (
        "deployment: {rollout: {modelLoadTimeout: -5m}}",
        lambda s: s.rollout.model_load_timeout_s,
        900,
    ),
    ("deployment: {rollout: {soakPeriod: 250ms}}", lambda s: s.rollout.soak_period_s, 0.25),
    (
        "deployment: {rollback: {modelLoadTimeout: 2m}}",
        lambda s: s.rollout.rollback_model_load_timeout_s,
        120,
    ),
    ("modelSync: {unloadGrace: 5s}", lambda s: s.model_sync.unload_grace_s, 5),
    ("modelSync: {loadTimeout: 30m}", lambda s: s.model_sync.load_timeout_s, 1800),
    (
        "deployment: {metricGate: {prometheusURL: '', queries: null}}",
        lambda s: s.keep_running,
        True,
    ),
    ("metadataStorage: {enableMetadataStorage: false}", lambda s: s.keep_running, True),
    ("controllermgr: {leaderElection: false}", lambda s: s.keep_running, True),
    ("inferenceServer: {triton: {defaultImage: ''}}", lambda s: s.keep_running, True),
]


@pytest.mark.parametrize(("text", "value", "expected"), KEYS, ids=[key for key, _, _ in KEYS])
def test_every_key_is_read(
    text: str, value: Callable[[Settings], object], expected: object
) -> None:
    assert value(parsed(text)) == expected


def test_storage_is_read_from_the_vendors_variables() -> None:
    settings = parsed("", AWS_ENDPOINT_URL="http://127.0.0.1:9000", AWS_SECRET_ACCESS_KEY="s3cr3t")

    assert settings.storage.s3.allow_http
    assert settings.storage_variables["AWS_SECRET_ACCESS_KEY"] == "s3cr3t"
    assert "s3cr3t" not in repr(settings)


WRONG = [
    (
        "deployments: {}",
        (
            "deployments is not a setting; known here: controllermgr, deployment, gateway, "
            "inferenceServer, logging, metadataStorage, modelSync (my.yaml:1)"
        ),
    ),
    (
        "deployment:\n  rollout:\n    skipCanry: true",
        (
            "deployment.rollout.skipCanry is not a setting; known here: modelLoadTimeout, "
            "skipCanary, soakPeriod (my.yaml:3)"
        ),
    ),
    (
        "inferenceServer: {triton: {readinessProbe: modelaware}}",
        (
            "inferenceServer.triton.readinessProbe is 'modelaware', not one of model-aware, "
            "server, none (my.yaml:1)"
        ),
    ),
    (
        "logging: {level: loud}",
        "logging.level is 'loud', not one of debug, info, warning, error (my.yaml:1)",
    ),
    (
        "logging: {encoding: xml}",
        "logging.encoding is 'xml', not one of console, json (my.yaml:1)",
    ),
    (
        "deployment: {rollout: {skipCanary: maybe}}",
        "deployment.rollout.skipCanary is neither true nor false: 'maybe' (my.yaml:1)",
    ),
    (
        "deployment: {rollout: {modelLoadTimeout: 15}}",
        (
            "deployment.rollout.modelLoadTimeout is not a duration such as 15m or 1h30m: '15' "
            "(my.yaml:1)"
        ),
    ),
    (
        "deployment: {rollout: fast}",
        "deployment.rollout is not a mapping (my.yaml:1)",
    ),
    (
        "inferenceServer: {triton: {drain: {preStopSeconds: 10s}}}",
        (
            "inferenceServer.triton.drain.preStopSeconds is not a number of zero or more: '10s' "
            "(my.yaml:1)"
        ),
    ),
    (
        "inferenceServer: {triton: {drain: {preStopSeconds: -1}}}",
        (
            "inferenceServer.triton.drain.preStopSeconds is not a number of zero or more: -1 "
            "(my.yaml:1)"
        ),
    ),
    (
        "inferenceServer: {triton: {drain: {preStopSeconds: 1e999}}}",
        (
            "inferenceServer.triton.drain.preStopSeconds is not a number of zero or more: inf "
            "(my.yaml:1)"
        ),
    ),
    (
        "inferenceServer: {triton: {probes: {startup: {failureThreshold: 2.5}}}}",
        (
            "inferenceServer.triton.probes.startup.failureThreshold is not a whole number of zero "
            "or more: 2.5 (my.yaml:1)"
        ),
    ),
    (
        "inferenceServer: {triton: {readinessProbe: [server]}}",
        "inferenceServer.triton.readinessProbe is not a text (my.yaml:1)",
    ),
    (
        "deployment: {metricGate: {prometheusURL: http://127.0.0.1:9090}}",
        (
            "deployment.metricGate.prometheusURL is not supported: there is no metric gate, leave "
            "it unset (my.yaml:1)"
        ),
    ),
    (
        "deployment: {metricGate: {queries: [{name: latency, expr: up, threshold: 1}]}}",
        (
            "deployment.metricGate.queries has no effect: there is no metric gate, leave it unset "
            "(my.yaml:1)"
        ),
    ),
    (
        "deployment: {metricGate: {failClosed: true}}",
        (
            "deployment.metricGate.failClosed has no effect: there is no metric gate, leave it "
            "unset (my.yaml:1)"
        ),
    ),
    (
        "deployment: {metricGate: {timeout: 5s}}",
        (
            "deployment.metricGate.timeout has no effect: there is no metric gate, leave it unset "
            "(my.yaml:1)"
        ),
    ),
    (
        "metadataStorage: {enableMetadataStorage: true}",
        "metadataStorage.enableMetadataStorage is not supported: leave it false (my.yaml:1)",
    ),
    (
        "deployment: {metricGate: {queries: up}}",
        "deployment.metricGate.queries is not a list of mappings (my.yaml:1)",
    ),
    (
        "deployment: {metricGate: {failClosed: 1}}",
        "deployment.metricGate.failClosed is neither true nor false: 1 (my.yaml:1)",
    ),
    (
        "inferenceServer:\n  gateway:\n    name: ma-gateway\n    portName: http",
        (
            "inferenceServer.gateway names a Gateway of Kubernetes: here it is an Envoy of this "
            "machine, whose address is --gateway-address; leave it out (my.yaml:2)"
        ),
    ),
    (
        "inferenceServer: {triton: {defaultImage: 'triton:1'}}",
        (
            "inferenceServer.triton.defaultImage has no effect: Triton comes from the installed "
            "wheel; leave it out (my.yaml:1)"
        ),
    ),
    (
        "controllermgr: {leaderElection: true}",
        ("controllermgr.leaderElection is not needed: one process has the data folder (my.yaml:1)"),
    ),
    (
        "controllermgr: {metricsBindAddress: ':8091'}",
        ("controllermgr.metricsBindAddress is --metrics-address here; leave it out (my.yaml:1)"),
    ),
    (
        "controllermgr: {workers: 3}",
        "controllermgr.workers is not a setting; known here: leaderElection (my.yaml:1)",
    ),
    (
        "k8s: {qps: 300, burst: 600}",
        (
            "k8s limits calls to a Kubernetes API server: there is none here; leave it out "
            "(my.yaml:1)"
        ),
    ),
    (
        "gateway: {corsOrigins: ['https://a.example/path']}",
        (
            "gateway.corsOrigins has 'https://a.example/path', which is no origin like "
            "https://a.b:8443 (my.yaml:1)"
        ),
    ),
    (
        "gateway: {corsOrigins: https://a.example}",
        "gateway.corsOrigins is not a list of texts: 'https://a.example' (my.yaml:1)",
    ),
    ("- deployment", "settings is not a mapping (my.yaml:1)"),
    ("logging: {}\n---\nlogging: {}", "settings has 2 documents, settings are one (my.yaml:3)"),
]


@pytest.mark.parametrize(("text", "problem"), WRONG, ids=[text for text, _ in WRONG])
def test_what_is_wrong_is_named_with_its_place(text: str, problem: str) -> None:
    assert refused(text) == [problem]


GUIDE_DEFAULTS = """
deployment:
  rollout:
    skipCanary: false
    modelLoadTimeout: 15m
    soakPeriod: 0
  rollback:
    modelLoadTimeout: 15m
  metricGate:
    prometheusURL: ""
    failClosed: false
    timeout: 10s
    queries:
      - name: triton-inference-failure-ratio
        expr: sum(rate(nv_inference_request_failure{model="{{.Model}}"}[5m]))
        threshold: 0.05
        comparison: GT
inferenceServer:
  triton:
    readinessProbe: model-aware
    probes:
      startup: {periodSeconds: 0, timeoutSeconds: 0, failureThreshold: 0}
    drain: {preStopSeconds: 10, exitTimeoutSeconds: 30}
"""


def test_the_guides_defaults_written_out_are_the_defaults() -> None:
    assert parsed(GUIDE_DEFAULTS) == parsed("")


@pytest.mark.parametrize("queries", ["null", "[]"])
def test_no_queries_are_the_default_ones(queries: str) -> None:
    text = f"deployment: {{metricGate: {{failClosed: false, queries: {queries}}}}}"

    assert parsed(text) == parsed("")


@pytest.mark.parametrize("block", sorted(ELSEWHERE))
def test_a_block_of_another_place_is_refused_with_what_to_do(block: str) -> None:
    (problem,) = refused(f"{block}: {{anything: 1}}")

    assert problem == f"{block} {ELSEWHERE[block]} (my.yaml:1)"
    assert parsed(f"{block}: null") == parsed("")


@pytest.mark.parametrize(
    "text",
    [
        "deployment: {rollout: {skipCanary: true}, rollout: {skipCanary: false}}",
        "deployment: [",
        "deployment: {rollout",
    ],
)
def test_what_is_no_plain_yaml_is_refused_with_its_place(text: str) -> None:
    (problem,) = refused(text)

    assert "my.yaml:1" in problem


def test_everything_that_is_wrong_is_told_at_once() -> None:
    problems = refused(
        "logging: {level: loud}\ndeployment: {rollout: {soakPeriod: x, y: 1}}",
        AWS_ENDPOINT_URL="minio:9000",
    )

    assert [problem.split(" ")[0] for problem in problems] == [
        "logging.level",
        "deployment.rollout.soakPeriod",
        "deployment.rollout.y",
        "AWS_ENDPOINT_URL",
    ]
