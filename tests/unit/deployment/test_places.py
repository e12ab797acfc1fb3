"""Where a Deployment is served and where its candidate is being made (ADR 0016)."""

import json

import pytest

from maserve.deployment.places import (
    candidate_server,
    describe_candidate,
    forget_places,
    is_live,
    is_moving,
    is_wanted,
    known_servers,
    leave_candidate_place,
    other_servers,
    settle_candidate_place,
    working_server,
)
from maserve.deployment.stock.placement import candidate_place, record_placement, serving_place
from maserve.resource.annotations import CANDIDATE_SERVER, KNOWN_SERVERS, PLACED_ON
from maserve.testing.builders import a_deployment, an_inference_server
from maserve.wire import v2


def moving(*, to: str = "other", desired: str = "m1") -> v2.Deployment:
    """Build a Deployment that serves m1 on `is` and goes to another server."""
    deployment = a_deployment(desired=desired, candidate=desired, current="m1", placed=["c1"])
    deployment.spec.inference_server.name = to
    deployment.metadata.annotations[CANDIDATE_SERVER] = to
    return deployment


def placed_there(deployment: v2.Deployment) -> v2.Deployment:
    server = an_inference_server("other", clusters=["c2", "c3"])
    record_placement(deployment, server, tuple(server.spec.cluster_targets))
    return deployment


def ids(targets: tuple[v2.ClusterTarget, ...]) -> list[str]:
    return [target.cluster_id for target in targets]


def test_before_anything_is_placed_the_spec_says_where() -> None:
    deployment = a_deployment()

    assert candidate_server(deployment) == "is"
    assert known_servers(deployment) == ("is",)
    assert not is_moving(deployment)


def test_a_placement_elsewhere_leaves_the_serving_place_as_it_is() -> None:
    deployment = placed_there(moving())

    assert serving_place(deployment).server.name == "is"
    assert ids(serving_place(deployment).targets) == ["c1"]
    assert candidate_place(deployment).server.name == "other"
    assert ids(candidate_place(deployment).targets) == ["c2", "c3"]
    assert known_servers(deployment) == ("is", "other")


def test_people_are_shown_the_server_on_which_something_happens() -> None:
    assert working_server(moving()) == "is"
    deployment = placed_there(moving())
    assert working_server(deployment) == "other"
    leave_candidate_place(deployment)
    assert working_server(deployment) == "is"


def test_the_candidate_s_place_is_empty_until_it_is_recorded() -> None:
    assert candidate_place(moving()).targets == ()


def test_a_candidate_is_a_server_and_a_revision() -> None:
    deployment = moving()

    assert is_moving(deployment)
    assert not is_live(deployment)
    assert describe_candidate(deployment) == "m1 on server other"


@pytest.mark.parametrize(
    ("server", "model", "wanted"),
    [("other", "m1", True), ("is", "m1", False), ("other", "m2", False)],
)
def test_what_is_wanted_is_a_server_and_a_revision(server: str, model: str, wanted: bool) -> None:
    deployment = moving()
    deployment.spec.inference_server.name = server
    deployment.spec.desired_revision.name = model

    assert is_wanted(deployment) is wanted


def test_an_arrival_makes_the_candidate_s_place_the_only_one() -> None:
    deployment = placed_there(moving())

    settle_candidate_place(deployment)

    assert serving_place(deployment).server.name == "other"
    assert ids(serving_place(deployment).targets) == ["c2", "c3"]
    assert known_servers(deployment) == ("other",)
    assert is_live(deployment)


def test_a_move_that_came_back_keeps_its_place_and_knows_what_was_tried() -> None:
    deployment = placed_there(moving())

    leave_candidate_place(deployment)

    assert serving_place(deployment).server.name == "is"
    assert known_servers(deployment) == ("is",)
    assert candidate_place(deployment).targets == ()
    assert candidate_server(deployment) == "other"
    assert not is_live(deployment)


def test_a_server_of_an_attempt_before_stays_known() -> None:
    deployment = placed_there(moving())
    third = an_inference_server("third", clusters=["c1"])
    deployment.metadata.annotations[CANDIDATE_SERVER] = "third"

    record_placement(deployment, third, tuple(third.spec.cluster_targets))

    assert other_servers(deployment, "third") == ("is", "other")


@pytest.mark.parametrize("text", ["", "{", "7", '"other"'])
def test_a_damaged_record_of_servers_keeps_the_place(text: str) -> None:
    deployment = a_deployment(placed=["c1"])
    deployment.metadata.annotations[KNOWN_SERVERS] = text

    assert known_servers(deployment) == ("is",)


def test_without_the_record_of_servers_both_places_are_known_by_the_next_placement() -> None:
    deployment = moving()
    del deployment.metadata.annotations[KNOWN_SERVERS]

    placed_there(deployment)

    assert json.loads(deployment.metadata.annotations[KNOWN_SERVERS]) == ["is", "other"]


def test_after_a_cleanup_nothing_is_known() -> None:
    deployment = placed_there(moving())

    forget_places(deployment)

    assert not {PLACED_ON, CANDIDATE_SERVER, KNOWN_SERVERS} & set(deployment.metadata.annotations)
