from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maserve.base.errors import Invalid
from maserve.resource import parse_fields, parse_labels
from maserve.wire import v2

LABELS = {"tier": "1", "zone": "", "app.io/name": "web", "size": "10"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", True),
        ("  ", True),
        ("tier=1", True),
        ("tier==1", True),
        ("tier = 1", True),
        ("tier=2", False),
        ("tier!=2", True),
        ("none!=2", True),
        ("zone=", True),
        ("tier=", False),
        ("tier in (1,2)", True),
        ("tier in ( 3 , 2 )", False),
        ("tier notin (3)", True),
        ("none notin (3)", True),
        ("zone in ()", True),
        ("tier", True),
        ("none", False),
        ("!none", True),
        ("! tier", False),
        ("app.io/name=web", True),
        ("size>9", True),
        ("size>10", False),
        ("size<11", True),
        ("zone>1", False),
        ("tier=1,zone,!none", True),
        ("tier in (1,2),size<5", False),
    ],
)
def test_label_selectors_match(text: str, expected: bool) -> None:
    assert parse_labels(text).matches(LABELS) is expected


@pytest.mark.parametrize(
    "text",
    [
        "=1",
        "a=b=c",
        "a in b",
        "a in (b",
        "a,",
        ",a",
        "a b",
        "!",
        "a=b c",
        "-a=1",
        "a/b/c=1",
        "UP.io/a=1",
        "size>many",
        "a=-",
        "a in (b!)",
        f"a={'x' * 64}",
    ],
)
def test_bad_label_selectors_are_invalid(text: str) -> None:
    with pytest.raises(Invalid, match="labelSelector"):
        parse_labels(text)


@given(st.text(alphabet="ab=!,()<> in/", max_size=12))
def test_any_label_text_is_read_or_invalid(text: str) -> None:
    with suppress(Invalid):
        parse_labels(text).matches(LABELS)


def a_deployment() -> v2.Deployment:
    deployment = v2.Deployment()
    deployment.metadata.namespace, deployment.metadata.name = "prod", "d"
    deployment.metadata.generation = 3
    deployment.spec.inference_server.name = "is=1"
    deployment.spec.shadow_spec.enabled = True
    deployment.status.state = v2.DEPLOYMENT_STATE_HEALTHY
    return deployment


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", True),
        ("metadata.name=d", True),
        ("metadata.name==d,metadata.namespace=prod", True),
        ("metadata.name!=d", False),
        ("metadata.generation=3", True),
        ("spec.inference_server.name=is=1", True),
        ("spec.inferenceServer.name=is=1", True),
        ("spec.shadowSpec.enabled=true", True),
        ("status.state=DEPLOYMENT_STATE_HEALTHY", True),
        ("status.stage=DEPLOYMENT_STAGE_INVALID", True),
        ("status.message=", True),
        ("spec.desired_revision.name!=m", True),
    ],
)
def test_field_selectors_match(text: str, expected: bool) -> None:
    assert parse_fields(text, v2.Deployment).matches(a_deployment()) is expected


@pytest.mark.parametrize(
    "text",
    [
        "metadata.name",
        "=x",
        "metadata.nope=x",
        "spec=x",
        "spec.inferenceServer=x",
        "status.conditions=x",
        "status.conditions.type=x",
        "metadata.labels.a=x",
        "metadata.name.more=x",
        "metadata.name=x,",
    ],
)
def test_bad_field_selectors_are_invalid(text: str) -> None:
    with pytest.raises(Invalid, match="fieldSelector"):
        parse_fields(text, v2.Deployment)


def test_matching_sets_nothing() -> None:
    empty = v2.Deployment()
    assert not parse_fields("spec.desired_revision.name=m", v2.Deployment).matches(empty)
    assert empty.ByteSize() == 0
