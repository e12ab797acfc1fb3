"""A Model that is changed under a Deployment: never two contents of one name, and it is said."""

import pytest

from maserve.base.keys import ClusterId, Key, ModelName
from maserve.conditions import TRUE, UNKNOWN, find_condition
from maserve.testing.builders import SERVER, a_deployment, a_model
from maserve.testing.control_rig import ControlRig
from maserve.wire import api, v2

OTHER = "file:///models/other/"


@pytest.fixture
async def live(rig: ControlRig) -> ControlRig:
    """Have m1 live in two clusters, and m2 declared."""
    await rig.provide(clusters=("c1", "c2"))
    await rig.store.create(a_model("m1"))
    await rig.store.create(a_model("m2"))
    await rig.store.create(a_deployment(desired="m1"))
    await rig.run_deployment()
    return rig


async def change(rig: ControlRig, model: str, uri: str) -> None:
    resource = await rig.store.get(v2.Model, Key("ns", model))
    resource.spec.deployable_artifact_uri[0] = uri
    await rig.store.update(resource)


async def want(rig: ControlRig, model: str) -> None:
    deployment = await rig.deployment()
    deployment.spec.desired_revision.name = model
    await rig.store.update(deployment)


def paths(rig: ControlRig, model: str) -> list[str]:
    """Return the paths from which the clusters load the model."""
    lists = [rig.model_config.find_entries(SERVER, ClusterId(c)) or () for c in ("c1", "c2")]
    return [entry.storage_path for listed in lists for entry in listed if entry.name == model]


async def steady(rig: ControlRig) -> api.Condition:
    await rig.settle_deployment()
    found = find_condition((await rig.deployment()).status.conditions, "StateSteady")
    assert found is not None
    return found


async def test_a_change_under_what_is_served_is_reported_and_changes_nothing(
    live: ControlRig,
) -> None:
    before = list(live.writes)
    await change(live, "m1", OTHER)

    condition = await steady(live)

    assert (condition.status, condition.reason) == (UNKNOWN, "ModelChanged")
    assert condition.message.startswith(
        "Model ns/m1 names file:///models/other/ now, and what is served was loaded from "
        "file:///models/m1/"
    )
    assert live.writes == before
    assert (await live.deployment()).status.state == v2.DEPLOYMENT_STATE_HEALTHY


async def test_a_change_is_told_once_and_is_over_when_it_is_taken_back(live: ControlRig) -> None:
    await change(live, "m1", OTHER)
    await live.run_deployment(rounds=20)
    told = [event.type for event in live.recorder.events if event.reason == "ModelChanged"]
    await change(live, "m1", "file:///models/m1")

    assert told == ["Warning"]
    assert (await steady(live)).status == TRUE


async def test_a_model_that_is_deleted_under_what_is_served_is_reported(live: ControlRig) -> None:
    await live.store.delete(v2.Model, Key("ns", "m1"))

    condition = await steady(live)

    assert (condition.status, condition.reason) == (UNKNOWN, "ModelChanged")
    assert "not found" in condition.message
    assert condition.message.endswith("served on from file:///models/m1/")


@pytest.mark.parametrize("rounds", [0, 1, 4, 6])
async def test_a_change_in_the_middle_of_a_rollout_mixes_nothing(
    live: ControlRig, rounds: int
) -> None:
    live.world.slow["m2"] = 2.0
    await want(live, "m2")
    await live.settle_deployment()
    await live.run_deployment(rounds=rounds)
    await change(live, "m2", OTHER)

    await live.run_deployment(rounds=30)

    assert (await live.deployment()).status.current_revision.name == "m2"
    assert paths(live, "m2") == ["file:///models/m2/"] * 2
    assert (await steady(live)).reason == "ModelChanged"


async def test_a_lost_entry_is_made_again_with_what_the_other_cluster_serves(
    live: ControlRig,
) -> None:
    await change(live, "m1", OTHER)
    await live.site("c2").remove_entry(ModelName("m1"), "Seed")

    await live.run_deployment(rounds=10)

    assert paths(live, "m1") == ["file:///models/m1/"] * 2
