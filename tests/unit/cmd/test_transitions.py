"""Events are recorded, and told in one line each."""

import pytest

from maserve.cmd.transitions import REMEMBERED, Teller, TellingRecorder
from maserve.resource import Resource
from maserve.testing.builders import a_deployment, an_inference_server
from maserve.testing.recorder import FakeRecorder


@pytest.mark.parametrize(
    ("resource", "kind"),
    [(a_deployment(), "Deployment ns/d"), (an_inference_server(), "InferenceServer ns/is")],
    ids=["Deployment", "InferenceServer"],
)
def test_an_event_is_recorded_and_told(resource: Resource, kind: str) -> None:
    told: list[str] = []
    recorder = FakeRecorder()
    telling = TellingRecorder(recorder, Teller(told.append))

    telling.normal(resource, "StageChange", "from A to B")
    telling.warning(resource, "CreationFailed", "no cluster serves")

    assert told == [
        f"{kind}: StageChange: from A to B",
        f"{kind}: warning CreationFailed: no cluster serves",
    ]
    assert [(event.type, event.reason) for event in recorder.events] == [
        ("Normal", "StageChange"),
        ("Warning", "CreationFailed"),
    ]


def test_what_an_object_said_last_is_not_told_again() -> None:
    told: list[str] = []
    telling = TellingRecorder(FakeRecorder(), Teller(told.append))

    for text in ("no disk", "no disk", "no room", "no disk"):
        telling.warning(a_deployment(), "ReconciliationError", text)

    assert [line.rpartition(": ")[2] for line in told] == ["no disk", "no room", "no disk"]


def test_only_so_many_objects_are_remembered() -> None:
    told: list[str] = []
    telling = TellingRecorder(FakeRecorder(), Teller(told.append))
    kept, *others = (a_deployment(f"d{number}") for number in range(REMEMBERED + 1))

    telling.normal(kept, "StageChange", "from A to B")
    for other in others:
        telling.normal(other, "StageChange", "from A to B")
        telling.normal(kept, "StageChange", "from A to B")
    assert len(told) == REMEMBERED + 1  # the one that goes on speaking stays known

    telling.normal(others[0], "StageChange", "from A to B")
    assert len(told) == REMEMBERED + 2
