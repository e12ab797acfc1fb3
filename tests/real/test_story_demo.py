"""The main job: the examples applied at once, rolled on, a bad model undone, all removed."""

import asyncio
import json
from pathlib import Path

import pytest

from maserve.base.keys import Key
from maserve.host import HttpClient
from maserve.resource import from_yaml
from maserve.testing.live import LiveControlPlane
from maserve.testing.live_story import a_story, is_complete, is_rolled_back
from maserve.testing.load_process import load_on
from maserve.wire import v2

# A control plane, four engines, three rollouts and a rollback.
pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]

EXAMPLES = Path(__file__).parents[2] / "examples"
SERVER = Key("digits", "digits-server")
DEPLOYMENT = Key("digits", "digits")
SEVEN = EXAMPLES / "request.json"

WITHIN_S = 60.0


async def apply_examples(plane: LiveControlPlane) -> None:
    """Apply every manifest at once, the Deployment before the server it needs."""
    paths = sorted((EXAMPLES / "manifests").glob("*.yaml"), key=_models_first)
    for path in paths:
        text = path.read_text().replace("${EXAMPLES}", str(EXAMPLES))
        for manifest in from_yaml(text, source=path.name):
            await plane.client.apply(manifest.resource)


def _models_first(path: Path) -> tuple[bool, str]:
    """Put models first: a Deployment of a model that is not there fails at once."""
    return not path.name.startswith("model-"), path.name


async def ask_for(plane: LiveControlPlane, model: str) -> None:
    deployment = await plane.client.get(v2.Deployment, DEPLOYMENT)
    deployment.spec.desired_revision.name = model
    await plane.client.apply(deployment)


async def complete(plane: LiveControlPlane, model: str) -> None:
    async with asyncio.timeout(WITHIN_S):
        await plane.client.wait_until(
            v2.Deployment, DEPLOYMENT, lambda now: now is not None and is_complete(now, model)
        )


async def undone(plane: LiveControlPlane, model: str) -> v2.Deployment:
    """Wait until a rollout was undone with `model` the current one."""
    async with asyncio.timeout(WITHIN_S):
        found = await plane.client.wait_until(
            v2.Deployment, DEPLOYMENT, lambda now: now is not None and is_rolled_back(now, model)
        )
    assert found is not None
    return found


async def predict(plane: LiveControlPlane) -> tuple[str, int]:
    """Send the picture of a seven; return which model answered and what it saw."""
    async with HttpClient() as http:
        answer = await http.request("POST", url(plane), body=SEVEN.read_bytes(), timeout_s=10)
    assert answer.status == 200, answer.text()
    body = json.loads(answer.body)
    digit = next(row for row in body["outputs"] if row["name"] == "digit")
    return body["model_name"], digit["data"][0]


def url(plane: LiveControlPlane) -> str:
    return f"http://{plane.at.gateway}/digits-server/digits/infer"


async def delete_everything(plane: LiveControlPlane) -> None:
    for kind, key in ((v2.Deployment, DEPLOYMENT), (v2.InferenceServer, SERVER)):
        await plane.client.delete(kind, key)
    for kind, key in ((v2.Deployment, DEPLOYMENT), (v2.InferenceServer, SERVER)):
        async with asyncio.timeout(WITHIN_S):
            await plane.client.wait_until(kind, key, lambda now: now is None)


async def test_examples_are_served_rolled_on_undone_and_removed(tmp_path: Path) -> None:
    async with a_story(tmp_path) as story:
        plane = story.plane
        await apply_examples(plane)
        await complete(plane, "digits-v1")
        assert await predict(plane) == ("digits-v1", 7)

        async with load_on(url(plane), SEVEN, rate_per_s=100) as load:
            await ask_for(plane, "digits-v2")
            await complete(plane, "digits-v2")
            assert await predict(plane) == ("digits-v2", 7)
            await ask_for(plane, "digits-v3-broken")
            failed = await undone(plane, "digits-v2")
            summary = await load.finish()
        print(f"v1 to v2 and the undone v3: {summary.to_json()}")
        assert (summary.failed, summary.failures) == (0, ())
        assert set(summary.answered_by) == {"digits-v1", "digits-v2"}
        assert await predict(plane) == ("digits-v2", 7)

        await expect_the_cause_told(plane, failed)
        await delete_everything(plane)
        assert plane.replica_files() == ()
        assert [name for name in plane.program_pids() if "engine" in name or "sync" in name] == []
        assert await plane.stop() == 0
        assert plane.leftovers() == ()


async def expect_the_cause_told(plane: LiveControlPlane, failed: v2.Deployment) -> None:
    """Expect model, cluster, replica and the engine's reason in status and events."""
    message = failed.status.message
    refusal = "weights"
    told = ("digits-v3-broken", "compute-1", "triton-digits-server-compute-1-", refusal)
    assert [word for word in told if word not in message] == [], message
    view = await plane.client.describe(v2.Deployment, DEPLOYMENT)
    events = "\n".join(event.message for event in view.events)
    assert [word for word in told if word not in events] == [], events
