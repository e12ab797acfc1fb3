"""A Deployment that is pointed at another server, under load on real processes (ADR 0016)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from maserve.base.clock import SystemClock
from maserve.base.errors import Unavailable
from maserve.host import HttpClient
from maserve.testing.live_story import SERVER, Story, a_story, is_complete, is_rolled_back
from maserve.testing.tiny_models import REQUEST
from maserve.wire import v2

# Two servers start and drain.
pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]

OTHER = "other"


async def test_a_move_that_fails_or_is_mistyped_costs_no_request_and_a_good_one_none(
    tmp_path: Path,
) -> None:
    async with a_story(tmp_path) as story:
        await story.model("blue")
        await story.model("broken", fails="weights are missing")
        await story.server(clusters=("c1",), replicas=1)
        await story.roll("blue")
        await story.server(clusters=("c1",), replicas=1, name=OTHER)
        async with story.load() as load:
            await mistype_the_server(story)
            await move_with_a_broken_model(story)
            summary = await load.finish()
        print(f"a mistyped server, then a model that does not load: {summary.to_json()}")
        assert (summary.failed, set(summary.answered_by)) == (0, {"blue"})
        async with asking_both_paths(story) as answers:
            await story.ask("blue", server=OTHER)
            await story.until(lambda now: is_there(now) and is_complete(now, "blue"))
        without = sum(not any(pair) for pair in answers)
        print(f"a good move: {len(answers)} looks at both paths, {without} without an answer")
        assert len(answers) > 5
        assert without == 0
        assert answers[-1] == (False, True)


async def mistype_the_server(story: Story) -> None:
    await story.ask("blue", server="otehr")
    waiting = await story.until(
        lambda now: any("story/otehr not found" in each.message for each in now.status.conditions)
    )
    assert waiting.status.current_revision.name == "blue"
    await SystemClock().sleep(1.0)
    await story.ask("blue")
    await story.until(lambda now: is_rolled_back(now, "blue"))


async def move_with_a_broken_model(story: Story) -> None:
    await story.ask("broken", server=OTHER)
    failed = await story.until(
        lambda now: is_rolled_back(now, "blue") and now.status.candidate_revision.name == "broken"
    )
    assert "weights are missing" in failed.status.message
    assert f"rolling back to blue on server {SERVER.name}" in failed.status.message


@asynccontextmanager
async def asking_both_paths(story: Story) -> AsyncIterator[list[tuple[bool, bool]]]:
    """Ask the old path and the new one, again and again; collect which of them answered."""
    answers: list[tuple[bool, bool]] = []

    async def ask_on(http: HttpClient) -> None:
        while True:
            answers.append((await answered(http, SERVER.name), await answered(http, OTHER)))
            await SystemClock().sleep(0.02)

    async def answered(http: HttpClient, server: str) -> bool:
        url = story.url_on(server)
        with suppress(Unavailable):
            return (
                await http.request("POST", url, body=REQUEST.encode(), timeout_s=5)
            ).status == 200
        return False

    async with HttpClient() as http, asyncio.TaskGroup() as group:
        task = group.create_task(ask_on(http))
        yield answers
        await SystemClock().sleep(0.2)
        task.cancel()


def is_there(deployment: v2.Deployment) -> bool:
    return deployment.metadata.annotations["deployment.michelangelo.ai/inference-server"] == OTHER
