"""Every way a call can be refused: codes and texts."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
from prometheus_client import CollectorRegistry

from maserve.apiserver import ApiServer, ApiSettings, Extensions, NoHooks, stock_extensions
from maserve.base.clock import SystemClock
from maserve.base.errors import (
    Denied,
    Error,
    Expired,
    Invalid,
    Problem,
    Unavailable,
    Unsupported,
)
from maserve.resource import Resource
from maserve.store.sqlite import SqliteStore
from maserve.testing.resources import (
    a_deployment,
    a_model,
    a_project,
    a_revision,
    an_inference_server,
)
from maserve.wire import meta, v2

FIELDS = {
    v2.Project: ("Project", "project"),
    v2.Model: ("Model", "model"),
    v2.ModelFamily: ("ModelFamily", "model_family"),
    v2.InferenceServer: ("InferenceServer", "inference_server"),
    v2.Deployment: ("Deployment", "deployment"),
    v2.Revision: ("Revision", "revision"),
    v2.Cluster: ("Cluster", "cluster"),
}


def changed(resource: Resource, change: Callable[[Any], object]) -> Resource:
    change(resource)
    return resource


def a_family(name: str) -> v2.ModelFamily:
    family = v2.ModelFamily(metadata=meta.ObjectMeta(name="f1", namespace="demo"))
    family.spec.name = name
    return family


def a_sub_zonal(increment: int) -> v2.Deployment:
    deployment = a_deployment()
    step = deployment.spec.strategy.disaggregated.steps.add()
    step.sub_zonal.increment = increment
    return deployment


CASES = [
    (
        changed(a_deployment(), lambda d: d.spec.ClearField("inference_server")),
        "one field in oneof spec.target(inference_server,mobile_spec) must be set",
    ),
    (
        changed(a_deployment(), lambda d: d.spec.strategy.ClearField("rolling")),
        "one field in oneof spec.strategy.",
    ),
    (changed(a_project(), lambda p: p.spec.ClearField("tier")), "spec.tier must be a non-zero"),
    (
        changed(a_project(), lambda p: setattr(p.spec, "tier", 6)),
        "spec.tier must be in the range [1,5]",
    ),
    (
        changed(a_project(), lambda p: p.spec.ClearField("description")),
        "spec.description cannot be empty",
    ),
    (changed(a_project(), lambda p: p.spec.ClearField("owner")), "spec.owner cannot be nil"),
    (
        changed(a_project(), lambda p: setattr(p.spec.owner, "owning_team", "me")),
        "spec.owner.owning_team must be a valid UUID",
    ),
    (
        changed(a_project(), lambda p: p.spec.commit.SetInParent()),
        "spec.commit.git_ref cannot be empty; spec.commit.branch cannot be empty",
    ),
    (
        a_sub_zonal(0),
        "spec.strategy.disaggregated.steps[0].sub_zonal.increment must be in the range [10,40]",
    ),
    (a_family("-x"), "spec.name must be alphanumeric, underscore or dash"),
    (a_family("x" * 41), "spec.name must be at most 40 characters long"),
    (
        changed(a_revision(), lambda r: r.spec.ClearField("source")),
        "spec.source cannot be empty",
    ),
    (
        v2.Cluster(metadata=meta.ObjectMeta(name="c1", namespace="ma-system")),
        "one field in oneof spec.cluster(",
    ),
    (
        changed(
            an_inference_server(),
            lambda s: setattr(s.spec.init_spec.resource_spec, "cpu", -1),
        ),
        "spec.init_spec.resource_spec.cpu must be >= 0",
    ),
    (
        an_inference_server("x" * 46),
        "metadata.name must be at most 45 characters long, to leave room for names made of it",
    ),
    (an_inference_server("a.b"), "metadata.name must be a DNS label"),
    (an_inference_server("x" * 64), "metadata.name must be a DNS label"),
    (a_deployment("A"), "metadata.name must be a DNS subdomain"),
    (a_model("a.b"), "metadata.name must be a DNS label"),
    (a_model(namespace="a.b"), "metadata.namespace must be a DNS label"),
    (a_model(""), "metadata.name cannot be empty"),
    (a_model(namespace=""), "metadata.namespace cannot be empty"),
    (a_model("../x"), "metadata.name must be a DNS subdomain"),
    (
        an_inference_server(clusters=("c1", "../c2")),
        "spec.cluster_targets[1].cluster_id must be a DNS label",
    ),
    (
        an_inference_server(clusters=("c1", "c1")),
        "spec.cluster_targets[1].cluster_id is there twice: 'c1'",
    ),
    (
        changed(a_model(), lambda m: m.metadata.labels.update({"a b": "c"})),
        "metadata.labels has a key that is no label name: 'a b'",
    ),
    (
        changed(a_model(), lambda m: setattr(m.spec, "description", "x" * (2 << 20))),
        "failed to create API object. namespace: demo, name: m1: Model is too large",
    ),
    (
        changed(a_model(), lambda m: setattr(m.metadata, "resourceVersion", "7")),
        "failed to create API object. namespace: demo, name: m1: metadata.resourceVersion must not",
    ),
]


@pytest.mark.parametrize(("resource", "text"), CASES, ids=[text[:50] for _, text in CASES])
async def test_invalid_objects_are_refused_with_what_is_wrong(
    raw: Any, resource: Resource, text: str
) -> None:
    kind, field = FIELDS[type(resource)]
    code, details = await raw.refused(kind, f"Create{kind}", **{field: resource})
    assert code == "INVALID_ARGUMENT"
    assert details.startswith(text)


@pytest.mark.parametrize("name", ["A_b", "a.b", "x" * 46, "x" * 64, "A" * 300])
async def test_of_a_name_only_the_first_broken_rule_is_reported(raw: Any, name: str) -> None:
    server = an_inference_server(name)
    _, text = await raw.refused("InferenceServer", "CreateInferenceServer", inference_server=server)
    assert text.count("metadata.name") == 1


async def test_every_problem_is_reported_in_field_order(raw: Any) -> None:
    project = v2.Project(metadata=meta.ObjectMeta(name="Bad", namespace="demo"))
    project.spec.tier = 9
    _, details = await raw.refused("Project", "CreateProject", project=project)
    assert details.split("; ")[:5] == [
        "spec.description cannot be empty",
        "spec.owner cannot be nil",
        "spec.tier must be in the range [1,5]",
        "spec.git_repo cannot be empty",
        "spec.root_dir cannot be empty",
    ]
    assert details.split("; ")[5].startswith("metadata.name must be a DNS subdomain")


@pytest.mark.parametrize(
    "team",
    [
        "00000000-0000-0000-0000-00000000000A",
        "{00000000-0000-0000-0000-000000000001}",
        "urn:uuid:00000000-0000-0000-0000-000000000000",
        "00000000000000000000000000000001",
    ],
)
async def test_a_uuid_may_be_spelled_in_four_ways(raw: Any, team: str) -> None:
    project = a_project()
    project.spec.owner.owning_team = team
    await raw("Project", "CreateProject", project=project)


async def test_updates_are_validated_too(raw: Any) -> None:
    await raw("Project", "CreateProject", project=a_project())
    project = (await raw("Project", "GetProject", name="demo", namespace="demo")).project
    project.spec.tier = 0
    code, details = await raw.refused("Project", "UpdateProject", project=project)
    assert (code, details) == ("INVALID_ARGUMENT", "spec.tier must be a non-zero number")


@pytest.mark.parametrize("verb", ["Create", "Update"])
async def test_a_write_of_nothing_is_refused(raw: Any, verb: str) -> None:
    code, details = await raw.refused("Model", f"{verb}Model")
    assert (code, details) == ("INVALID_ARGUMENT", "model cannot be nil")


@pytest.mark.parametrize("verb", ["Get", "Delete"])
@pytest.mark.parametrize(
    ("namespace", "name", "text"),
    [
        ("", "", "namespace cannot be empty; name cannot be empty"),
        ("demo", "a/b", "name cannot be '.' or '..', or hold '/' or '%': 'a/b'"),
        ("..", "a", "namespace cannot be '.' or '..', or hold '/' or '%': '..'"),
        ("demo", "a%2fb", "name cannot be '.' or '..', or hold '/' or '%': 'a%2fb'"),
    ],
)
async def test_impossible_names_are_refused(
    raw: Any, verb: str, namespace: str, name: str, text: str
) -> None:
    answer = await raw.refused("Model", f"{verb}Model", namespace=namespace, name=name)
    assert answer == ("INVALID_ARGUMENT", text)


@pytest.mark.parametrize("verb", ["get", "delete"])
async def test_what_is_not_there_is_not_found(raw: Any, verb: str) -> None:
    code, text = await raw.refused("Model", f"{verb.capitalize()}Model", namespace="demo", name="x")
    assert code == "NOT_FOUND"
    assert text == (
        f"failed to {verb} API object. namespace: demo, name: x: Model demo/x not found"
    )


async def test_what_is_there_exists_already(raw: Any) -> None:
    await raw("Model", "CreateModel", model=a_model())
    code, text = await raw.refused("Model", "CreateModel", model=a_model())
    assert code == "ALREADY_EXISTS"
    assert text == (
        "failed to create API object. namespace: demo, name: m1: Model demo/m1 already exists"
    )


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda m: m.metadata.ClearField("resourceVersion"), "INVALID_ARGUMENT"),
        (lambda m: setattr(m.metadata, "resourceVersion", "0"), "INVALID_ARGUMENT"),
        (lambda m: setattr(m.metadata, "resourceVersion", "x"), "INVALID_ARGUMENT"),
        (lambda m: setattr(m.metadata, "resourceVersion", "1"), "FAILED_PRECONDITION"),
        (lambda m: setattr(m.metadata, "uid", "other"), "FAILED_PRECONDITION"),
        (lambda m: setattr(m.metadata, "name", "m3"), "NOT_FOUND"),
        (lambda m: setattr(m.metadata, "name", "m2"), "FAILED_PRECONDITION"),
        (lambda m: m.metadata.ClearField("uid"), "OK"),
    ],
    ids=["none", "zero", "word", "stale", "uid", "other name", "other object", "no uid"],
)
async def test_an_update_must_come_from_the_stored_version(
    raw: Any, change: Callable[[v2.Model], object], code: str
) -> None:
    await raw("Model", "CreateModel", model=a_model("m2"))
    stored = (await raw("Model", "CreateModel", model=a_model("m1"))).model
    stored.spec.description = "first"
    stored = (await raw("Model", "UpdateModel", model=stored)).model
    change(stored)
    assert await outcome(raw, "Model", "UpdateModel", model=stored) == code


async def outcome(raw: Any, kind: str, method: str, **fields: Any) -> str:
    try:
        await raw(kind, method, **fields)
    except grpc.aio.AioRpcError as error:
        return str(error.code().name)
    return "OK"


async def test_bytes_that_are_no_request_are_refused(raw: Any) -> None:
    path = "/michelangelo.api.v2.ModelService/GetModel"
    with pytest.raises(grpc.aio.AioRpcError, match="is no michelangelo"):
        await raw.send(path, b"\x0a\x02\xff\xfe", v2.GetModelResponse)


async def test_an_unknown_method_is_unimplemented(raw: Any) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await raw.send("/michelangelo.api.v2.ModelService/Fly", b"", v2.GetModelResponse)
    assert raised.value.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_a_request_of_more_than_4_mib_is_refused(raw: Any) -> None:
    model = changed(a_model(), lambda m: setattr(m.spec, "description", "x" * (5 << 20)))
    code, text = await raw.refused("Model", "CreateModel", model=model)
    assert code == "RESOURCE_EXHAUSTED"
    assert "larger than max" in text


class FailingHooks(NoHooks[v2.Model]):
    """Fails every create as it is told."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    async def before_create(self, resource: v2.Model, *, dry_run: bool) -> None:
        await asyncio.sleep(0)
        raise self._error


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (Invalid(Problem("a", "is b")), "INVALID_ARGUMENT", "a is b"),
        (Denied("not you"), "PERMISSION_DENIED", "not you"),
        (Unsupported("not here"), "UNIMPLEMENTED", "not here"),
        (Unavailable("not now"), "UNAVAILABLE", "not now"),
        (Expired("too old"), "NOT_FOUND", "too old"),
        (Error("secret"), "INTERNAL", "internal error; the API server's log has the details"),
        (KeyError("secret"), "INTERNAL", "internal error; the API server's log has the details"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
async def test_errors_of_hooks_keep_their_code_and_bugs_keep_their_secrets(
    store: SqliteStore, tmp_path: Path, error: Exception, code: str, text: str
) -> None:
    settings = ApiSettings(address=f"unix:{tmp_path}/other.sock", stop_s=0.1)
    async with (
        ApiServer(
            settings,
            store,
            inspector=None,  # type: ignore[arg-type]  # not called here
            extensions=Extensions(hooks={v2.Model: (FailingHooks(error),)}),
            clock=SystemClock(),
            registry=CollectorRegistry(),
        ) as server,
        grpc.aio.insecure_channel(server.address) as channel,
    ):
        call: Any = channel.unary_unary("/michelangelo.api.v2.ModelService/CreateModel")
        request = v2.CreateModelRequest(model=a_model())
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await call(request.SerializeToString(), timeout=5)
    assert raised.value.code().name == code
    assert raised.value.details() == text


async def test_a_build_may_add_rules_of_its_own(store: SqliteStore) -> None:
    def no_m1(model: v2.Model) -> list[Problem]:
        return [Problem("metadata.name", "must not be m1")] * (model.metadata.name == "m1")

    extensions = Extensions(validators={v2.Model: (no_m1,)})
    assert list(extensions.problems_of(a_model("m1"))) == [
        Problem("metadata.name", "must not be m1")
    ]
    assert not list(extensions.problems_of(a_model("m2")))
    assert stock_extensions(store, environment="x").hooks_of(v2.Cluster) == ()
