"""`kill -9` of the control plane at ten moments of a rollout changes nothing of how it ends.

The data plane answers through all of it and keeps its processes; the next start goes on where the
last one was killed.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from maserve.resource.annotations import ROLLOUT_COUNT
from maserve.testing.live_story import Story, a_story, is_complete, is_true, is_working_on
from maserve.wire import v2

# Twelve rollouts and eleven starts of the control plane.
pytestmark = [pytest.mark.real, pytest.mark.timeout(420)]

Moment = Callable[[v2.Deployment, str], bool]


def begun(now: v2.Deployment, model: str) -> bool:
    return now.status.candidate_revision.name == model


def working_on(condition: str) -> Moment:
    return lambda now, model: is_working_on(now, condition, model)


def done(condition: str) -> Moment:
    return lambda now, model: begun(now, model) and is_true(now, condition)


MOMENTS: tuple[Moment, ...] = (
    begun,
    working_on("CanaryRolloutComplete-c1"),
    done("CanaryRolloutComplete-c1"),
    done("RollingRolloutComplete-c1"),
    done("TrafficRoutingConfigured-c1"),
    working_on("CanaryRolloutComplete-c2"),
    working_on("RollingRolloutComplete-c2"),
    done("TrafficRoutingConfigured-c2"),
    done("ModelCleanupComplete-c1"),
    is_complete,
)

MODELS = ("green", "blue") * 5
"""What is rolled to at each moment; blue serves before the first."""


async def killed_and_completed(story: Story, model: str, moment: Moment) -> str:
    """Roll, kill at that moment, start again, wait for the end; return where it was killed."""
    await story.ask(model)
    await story.until(lambda now: moment(now, model) or is_complete(now, model))
    await story.plane.kill()
    await story.plane.start()
    where = await story.until(lambda now: begun(now, model))
    await story.until(lambda now: is_complete(now, model))
    await story.only_loaded(model)
    return v2.DeploymentStage.Name(where.status.stage)


async def state_with(story: Story, model: str) -> dict[str, object]:
    """Return everything that must be the same after every rollout, the model's name left out."""
    view = await story.view()
    now = v2.Deployment.FromString(view.object.value)
    annotations = dict(now.metadata.annotations)
    count = annotations.pop(ROLLOUT_COUNT)
    texts = {
        "status": [now.status.stage, now.status.state, now.status.message],
        "conditions": [(c.type, c.status, c.reason) for c in now.status.conditions],
        "annotations": sorted(name for name in annotations),
        "finalizers": list(now.metadata.finalizers),
        "clusters": [(c.cluster_id, c.state, len(c.replicas)) for c in view.clusters],
        "replicas": [(r.name, r.ready) for c in view.clusters for r in c.replicas],
        "entries": [(e.name, e.storage_path, e.phase) for c in view.clusters for e in c.entries],
        "routes": [(r.cluster_id, r.match_path, r.rewrite_path, r.live) for r in view.routes],
    }
    named = {key: str(value).replace(model, "MODEL") for key, value in texts.items()}
    return {**named, "rollouts": int(count)}


async def test_killed_at_ten_moments_it_ends_the_same_and_loses_no_request(
    tmp_path: Path,
) -> None:
    async with a_story(tmp_path) as story:
        await story.model("blue", load_s=0.2)
        await story.model("green", load_s=0.2)
        await story.server()
        await story.roll("green")
        await story.roll("blue")
        await story.only_loaded("blue")
        expected = await state_with(story, "blue")
        pids = story.plane.data_plane_pids()
        async with story.load(rate_per_s=100) as load:
            for number, (model, moment) in enumerate(zip(MODELS, MOMENTS, strict=True), 1):
                where = await killed_and_completed(story, model, moment)
                print(f"moment {number}: began again in {where}")
                found = await state_with(story, model)
                assert found == {**expected, "rollouts": 1 + number}
                assert story.plane.data_plane_pids() == pids
            summary = await load.finish()
        print(f"ten kills of the control plane: {summary.to_json()}")
        assert (summary.failed, summary.failures) == (0, ())
        assert set(summary.answered_by) == {"blue", "green"}
        assert await story.plane.stop() == 0
        assert story.plane.leftovers() == ()
