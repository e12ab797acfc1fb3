"""Strategy fields without effect are told to the user once a rollout."""

from maserve.conditions import UNKNOWN
from maserve.deployment.stock.rollout.placement_prepared import PlacementPrepared
from maserve.testing.builders import a_deployment
from maserve.testing.control_rig import ControlRig
from maserve.testing.expect import act, expect_condition


async def test_a_field_without_effect_is_named_in_an_event(rig: ControlRig) -> None:
    await rig.provide(clusters=("c1",))
    deployment = a_deployment(desired="m1", candidate="m1")
    deployment.spec.strategy.rolling.increment_percentage = 30
    actor = PlacementPrepared(rig.ports)
    expect_condition(await act(actor, deployment), UNKNOWN, "AnnotationWritten")
    assert [(event.reason, event.message) for event in rig.recorder.events] == [
        (
            "FieldsIgnored",
            "no effect on an inference server: spec.strategy.rolling.increment_percentage",
        )
    ]
