"""What a strategy asks for (behaviour 5.9) and the placement snapshot (5.6)."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maserve.deployment.stock import RolloutSettings
from maserve.deployment.stock.placement import (
    everywhere,
    record_placement,
    serving_place,
    snapshot_of,
)
from maserve.deployment.stock.strategy import Pace, ignored_fields, pace_of
from maserve.resource.annotations import (
    BACKEND_TYPE,
    PLACED_ON,
    TARGET_CLUSTERS,
)
from maserve.resource.targets import parse_targets, render_targets
from maserve.testing.builders import a_deployment, an_inference_server
from maserve.wire import v2

Change = Callable[[v2.DeploymentSpec], None]


def rolling(spec: v2.DeploymentSpec) -> None:
    spec.strategy.rolling.increment_percentage = 20


def zonal(spec: v2.DeploymentSpec) -> None:
    spec.strategy.zonal.rollout_period_in_seconds = 90


def zonal_without_period(spec: v2.DeploymentSpec) -> None:
    spec.strategy.zonal.SetInParent()


def blast(spec: v2.DeploymentSpec) -> None:
    spec.strategy.blast.with_rollback_trigger = True


def red_black(spec: v2.DeploymentSpec) -> None:
    spec.strategy.red_black.SetInParent()


def disaggregated(spec: v2.DeploymentSpec) -> None:
    spec.strategy.disaggregated.SetInParent()


def unset(_spec: v2.DeploymentSpec) -> None:
    return


@pytest.mark.parametrize(
    ("change", "pace"),
    [
        pytest.param(unset, Pace(canary=True, soak_s=30), id="unset"),
        pytest.param(rolling, Pace(canary=True, soak_s=30), id="rolling"),
        pytest.param(red_black, Pace(canary=True, soak_s=30), id="red-black-is-rolling"),
        pytest.param(disaggregated, Pace(canary=True, soak_s=30), id="disaggregated-is-rolling"),
        pytest.param(zonal, Pace(canary=True, soak_s=90), id="zonal-overrides-the-soak"),
        pytest.param(zonal_without_period, Pace(canary=True, soak_s=30), id="zonal-without-period"),
        pytest.param(blast, Pace(canary=False, soak_s=0), id="blast-skips-both"),
    ],
)
def test_a_strategy_sets_the_pace(change: Change, pace: Pace) -> None:
    deployment = a_deployment()
    change(deployment.spec)

    assert pace_of(deployment, RolloutSettings(soak_period_s=30)) == pace


@pytest.mark.parametrize("change", [unset, zonal])
def test_the_canary_can_be_switched_off(change: Change) -> None:
    deployment = a_deployment()
    change(deployment.spec)

    assert not pace_of(deployment, RolloutSettings(skip_canary=True)).canary


def test_a_negative_soak_is_none() -> None:
    assert pace_of(a_deployment(), RolloutSettings(soak_period_s=-5)).soak_s == 0


@pytest.mark.parametrize(
    ("change", "paths"),
    [
        pytest.param(unset, (), id="nothing"),
        pytest.param(rolling, ("spec.strategy.rolling.increment_percentage",), id="increment"),
        pytest.param(red_black, ("spec.strategy.red_black",), id="red-black"),
        pytest.param(disaggregated, ("spec.strategy.disaggregated",), id="disaggregated"),
        pytest.param(
            lambda spec: spec.shadow_spec.SetInParent(), ("spec.shadow_spec",), id="shadow"
        ),
        pytest.param(lambda spec: spec.selector.SetInParent(), ("spec.selector",), id="selector"),
        pytest.param(
            lambda spec: setattr(spec.inference_server, "namespace", "ns"), (), id="own-namespace"
        ),
        pytest.param(
            lambda spec: setattr(spec.inference_server, "namespace", "other"),
            ("spec.inference_server.namespace",),
            id="another-namespace",
        ),
    ],
)
def test_fields_without_effect_are_named(change: Change, paths: tuple[str, ...]) -> None:
    deployment = a_deployment()
    change(deployment.spec)

    assert ignored_fields(deployment) == paths


def test_a_placement_is_read_back_in_order() -> None:
    server = an_inference_server(clusters=["c2", "c1"])
    deployment = a_deployment()

    record_placement(deployment, server, tuple(server.spec.cluster_targets))

    assert [target.cluster_id for target in snapshot_of(deployment)] == ["c2", "c1"]
    assert deployment.metadata.annotations[PLACED_ON] == "is"
    assert deployment.metadata.annotations[BACKEND_TYPE] == "BACKEND_TYPE_TRITON"


@pytest.mark.parametrize("text", ["", "{", "7", '["c1"]'])
def test_a_missing_or_damaged_snapshot_is_no_cluster(text: str) -> None:
    deployment = a_deployment()
    deployment.metadata.annotations[TARGET_CLUSTERS] = text

    assert snapshot_of(deployment) == ()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("", v2.BACKEND_TYPE_TRITON, id="absent"),
        pytest.param("BACKEND_TYPE_INVALID", v2.BACKEND_TYPE_TRITON, id="invalid"),
        pytest.param("BACKEND_TYPE_OF_TOMORROW", v2.BACKEND_TYPE_TRITON, id="unknown"),
        pytest.param("BACKEND_TYPE_DYNAMO", v2.BACKEND_TYPE_DYNAMO, id="known"),
    ],
)
def test_the_backend_type_falls_back_to_triton(name: str, expected: "v2.BackendType") -> None:
    deployment = a_deployment()
    deployment.metadata.annotations[BACKEND_TYPE] = name

    assert serving_place(deployment).backend_type == expected


@pytest.mark.parametrize(
    ("placed", "server", "expected"),
    [
        pytest.param(["c1"], None, ["c1"], id="server-gone"),
        pytest.param([], an_inference_server(clusters=["c1", "c2"]), ["c1", "c2"], id="no-record"),
        pytest.param(
            ["c2"], an_inference_server(clusters=["c1", "c2"]), ["c2", "c1"], id="record-first"
        ),
        pytest.param(
            ["old"], an_inference_server(clusters=["c1"]), ["old", "c1"], id="removed-cluster"
        ),
        pytest.param([], None, [], id="nowhere"),
    ],
)
def test_cleanup_looks_wherever_something_may_be(
    placed: list[str], server: v2.InferenceServer | None, expected: list[str]
) -> None:
    recorded = snapshot_of(a_deployment(placed=placed))

    assert [target.cluster_id for target in everywhere(recorded, server)] == expected


NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12)


@st.composite
def targets(draw: st.DrawFn) -> v2.ClusterTarget:
    target = v2.ClusterTarget(cluster_id=draw(NAMES))
    connected = draw(st.booleans())
    target.kubernetes.host = draw(NAMES) if connected else ""
    target.kubernetes.port = draw(st.sampled_from(["", "6443"])) if connected else ""
    target.kubernetes.token_tag = draw(st.sampled_from(["", "token"])) if connected else ""
    return target


def rows(found: tuple[v2.ClusterTarget, ...]) -> list[tuple[str, str, str, str, str]]:
    return [
        (
            target.cluster_id,
            target.kubernetes.host,
            target.kubernetes.port,
            target.kubernetes.token_tag,
            target.kubernetes.ca_data_tag,
        )
        for target in found
    ]


@given(st.lists(targets(), max_size=4).map(tuple))
def test_targets_read_back_as_they_were_written(
    given_targets: tuple[v2.ClusterTarget, ...],
) -> None:
    text = render_targets(given_targets)

    assert rows(parse_targets(text)) == rows(given_targets)
    assert render_targets(parse_targets(text)) == text
