"""One model's trouble stays its own: the others on its server go on (ADR 0017)."""

import asyncio
import os
import signal
from functools import partial
from pathlib import Path

import pytest

from maserve.base.clock import SystemClock
from maserve.base.keys import Key
from maserve.host import HttpClient
from maserve.resource.names import discovery_path
from maserve.testing.live_story import NAMESPACE, SERVER, Story, a_story, is_complete
from maserve.testing.tiny_models import REQUEST
from maserve.wire import v2

# Engines are killed and start again.
pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]


async def test_a_model_that_no_replica_can_load_takes_no_other_down(tmp_path: Path) -> None:
    flag = tmp_path / "broken"
    async with a_story(tmp_path) as story:
        await story.model("blue")
        await story.model("green", flag=flag)
        await story.server(clusters=("c1",), replicas=2)
        for model, deployment in (("blue", "shop"), ("green", "other")):
            await story.ask(model, deployment=deployment)
            await story.until(partial(is_complete, model=model), deployment=deployment)
        flag.write_text("the weights are gone")
        before_s = SystemClock().monotonic()
        kill_engines(story)
        await until_answers(story, "shop", 200)
        took_s = SystemClock().monotonic() - before_s
        print(f"the bystander answers again {took_s:.1f} s after both engines were killed")
        await expect_states(story)
        async with story.load() as load:
            await SystemClock().sleep(1.0)
            summary = await load.finish()
        print(f"the bystander meanwhile: {summary.to_json()}")
        assert summary.failed == 0
        assert await status_of(story, "other") in (404, 503)

        flag.unlink()
        kill_engines(story)
        await until_answers(story, "other", 200)
        await until_required_again(story)


async def test_a_model_sync_that_stands_still_is_named_and_replaced(tmp_path: Path) -> None:
    async with a_story(tmp_path) as story:
        await story.model("blue")
        await story.server(clusters=("c1",), replicas=1)
        await story.roll("blue")
        ((name, pid),) = (
            (name, pid) for name, pid in story.plane.program_pids().items() if "sync" in name
        )
        os.kill(pid, signal.SIGKILL)
        async with asyncio.timeout(20):
            while "model-sync" not in await message(story):
                await SystemClock().sleep(0.1)
        async with asyncio.timeout(20):
            while story.plane.program_pids().get(name, pid) == pid:
                await SystemClock().sleep(0.1)
        async with asyncio.timeout(20):
            while "model-sync was started anew: killed by SIGKILL" not in await message(story):
                await SystemClock().sleep(0.1)
        print(f"said of the server: {await message(story)}")
        events = await story.client.describe(v2.InferenceServer, SERVER)
        assert any("model-sync" in event.message for event in events.events)


def kill_engines(story: Story) -> None:
    for name, pid in story.plane.program_pids().items():
        if name.endswith("/engine"):
            os.kill(pid, signal.SIGKILL)


async def status_of(story: Story, deployment: str) -> int:
    url = f"http://{story.plane.at.gateway}{discovery_path(SERVER.name, deployment)}/infer"
    async with HttpClient() as http:
        return (await http.request("POST", url, body=REQUEST.encode(), timeout_s=5)).status


async def until_answers(story: Story, deployment: str, status: int) -> None:
    async with asyncio.timeout(30):
        while await status_of(story, deployment) != status:
            await SystemClock().sleep(0.1)


async def expect_states(story: Story) -> None:
    """The one Deployment says that it is ill; its server says what it does not wait for."""
    ill = await story.until(
        lambda now: now.status.state == v2.DEPLOYMENT_STATE_UNHEALTHY, deployment="other"
    )
    print(f"the ill one: {ill.status.message}")
    well = await story.client.get(v2.Deployment, Key(NAMESPACE, "shop"))
    assert well.status.state == v2.DEPLOYMENT_STATE_HEALTHY
    async with asyncio.timeout(20):
        while "not required while no replica can have it: green" not in await message(story):
            await SystemClock().sleep(0.1)


async def until_required_again(story: Story) -> None:
    async with asyncio.timeout(30):
        while "not required" in await message(story):
            await SystemClock().sleep(0.1)


async def message(story: Story) -> str:
    view = await story.server_view()
    return "; ".join(cluster.message for cluster in view.clusters)
