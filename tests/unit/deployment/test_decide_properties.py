"""What holds for `decide` whatever state a Deployment is in."""

from hypothesis import given
from hypothesis import strategies as st

from maserve.deployment.decide import Gate, Lifecycle, decide
from maserve.deployment.keys import (
    ALERT_FIRED,
    DESIRED_CHANGED,
    candidate,
    current,
    is_cleanup,
)
from maserve.resource.annotations import (
    RETRY,
    ROLLBACK_REASON,
    ROLLOUT_COUNT,
)
from maserve.resource.metadata import clone
from maserve.testing.builders import a_deployment
from maserve.wire import v2

_MODELS = st.sampled_from(["", "m1", "m2", "m3"])
_STAGES = st.sampled_from(sorted(v2.DeploymentStage.values()))


@st.composite
def deployments(draw: st.DrawFn) -> v2.Deployment:
    deployment = a_deployment(
        desired=draw(_MODELS),
        candidate=draw(_MODELS),
        current=draw(_MODELS),
        stage=v2.DeploymentStage(draw(_STAGES)),
        placed=draw(st.sampled_from([(), ("c1",), ("c1", "c2")])),
    )
    deployment.spec.deletion_spec.deleted = draw(st.booleans())
    deployment.spec.inference_server.name = draw(st.sampled_from(["is", "elsewhere"]))
    deployment.metadata.annotations.update(draw(st.sampled_from([{}, {RETRY: "a"}, {RETRY: "b"}])))
    deployment.metadata.annotations.update(draw(st.sampled_from([{}, {ROLLOUT_COUNT: "3"}])))
    reason = st.sampled_from([ALERT_FIRED, DESIRED_CHANGED])
    deployment.metadata.annotations.update({ROLLBACK_REASON: draw(reason)})
    return deployment


GATES = st.builds(Gate, asked=st.just(True), healthy=st.booleans())


@given(deployments(), GATES)
def test_what_is_being_deleted_is_only_cleaned_up(deployment: v2.Deployment, gate: Gate) -> None:
    deployment.metadata.deletionTimestamp.seconds = 1

    assert decide(deployment, gate) is Lifecycle.CLEANUP
    assert is_cleanup(deployment.status.stage)


@given(deployments(), GATES)
def test_what_is_marked_deleted_is_never_rolled_out(deployment: v2.Deployment, gate: Gate) -> None:
    deployment.spec.deletion_spec.deleted = True
    deployment.status.stage = v2.DEPLOYMENT_STAGE_ROLLOUT_COMPLETE

    assert decide(deployment, gate) is not Lifecycle.ROLLOUT


@given(deployments(), GATES)
def test_the_current_revision_is_never_changed_by_a_decision(
    deployment: v2.Deployment, gate: Gate
) -> None:
    before = current(deployment)

    decide(deployment, gate)

    assert current(deployment) == before


@given(deployments(), GATES)
def test_a_crash_between_the_two_writes_changes_nothing_in_the_end(
    deployment: v2.Deployment, gate: Gate
) -> None:
    undisturbed = clone(deployment)
    lifecycle = decide(undisturbed, gate)
    crashed = clone(deployment)
    crashed.metadata.CopyFrom(undisturbed.metadata)

    assert decide(crashed, gate) is lifecycle
    assert crashed == undisturbed


@given(deployments(), GATES)
def test_a_rollout_is_always_of_what_is_wanted_or_was_begun(
    deployment: v2.Deployment, gate: Gate
) -> None:
    wanted = {deployment.spec.desired_revision.name, candidate(deployment)}

    lifecycle = decide(deployment, gate)

    assert lifecycle is not Lifecycle.ROLLOUT or candidate(deployment) in wanted


@given(deployments(), GATES)
def test_a_finished_pass_decides_the_same_again(deployment: v2.Deployment, gate: Gate) -> None:
    first = decide(deployment, gate)
    settled = clone(deployment)

    second = decide(deployment, Gate())

    assert (second, deployment) == (first, settled)
