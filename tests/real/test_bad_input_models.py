"""Models that cannot be served, on a live control plane: what the user reads, and what stays."""

import asyncio
import io
import tarfile
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from maserve.conditions import find_condition
from maserve.host.http import HttpClient
from maserve.resource.annotations import RETRY
from maserve.testing.live_story import (
    DEPLOYMENT,
    NAMESPACE,
    Story,
    a_story,
    fast_settings,
    is_complete,
    is_rolled_back,
)
from maserve.testing.resources import a_model
from maserve.testing.tiny_models import REQUEST, write_model
from maserve.wire import v2

# One engine that loads ten models one after the other, one of which takes its whole budget.
pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]

BUDGET = "8s"
AGAIN = f"; rolling back to good; to try %s again, change the annotation {RETRY}"
AT = "model %s failed to load in cluster c1 on replica triton-server-c1-0: "


def settings() -> Mapping[str, object]:
    return {**fast_settings(), "deployment": {"rollout": {"modelLoadTimeout": BUDGET}}}


def an_archive(path: Path, member: str) -> None:
    with tarfile.open(path, "w") as archive:
        info = tarfile.TarInfo(member)
        info.size = 4
        archive.addfile(info, io.BytesIO(b"evil"))


def a_cut_off_archive(path: Path) -> None:
    an_archive(path, "model/1/model.py")
    path.write_bytes(path.read_bytes()[:514])


def a_folder_without_version(path: Path) -> None:
    path.mkdir()
    (path / "readme.txt").write_text("soon")


ASSETS = "AssetsPrepared: Model %s: spec.deployable_artifact_uri: "
CANARY = "CanaryRolloutComplete-c1: "

# Name in the folder of artifacts, how it is made, what is said of it; %s is its URI.
BAD: Mapping[str, tuple[str, Callable[[Path], object], str]] = {
    "absent": (
        "absent",
        lambda _: None,
        ASSETS % "absent"
        + "artifact %s not found; put the model's files there or name another Model",
    ),
    "empty": (
        "empty",
        Path.mkdir,
        ASSETS % "empty" + "artifact %s not found: there is no file below it; put the model's "
        "files there or name another Model",
    ),
    "unversioned": (
        "unversioned",
        a_folder_without_version,
        CANARY
        + AT % "unversioned"
        + "%s/: needs a version folder named by a number, like 1/; holds readme.txt",
    ),
    "garbage": (
        "garbage.tar.gz",
        lambda path: path.write_bytes(b"this is no archive"),
        CANARY + AT % "garbage" + "%s: archive cannot be read: Not a gzipped file (b'th')",
    ),
    "cut-off": (
        "cut-off.tar",
        a_cut_off_archive,
        CANARY + AT % "cut-off" + "%s: archive cannot be read: unexpected end of data",
    ),
    "escaping": (
        "escaping.tar",
        lambda path: an_archive(path, "../../../evil"),
        CANARY + AT % "escaping" + "%s: archive member '../../../evil' climbs out of its folder",
    ),
}


async def until_undone(story: Story, model: str) -> str:
    """Ask for the model, wait until that was undone, and return what is said of it."""
    await story.ask(model)
    undone = await story.until(
        lambda now: is_rolled_back(now, "good") and now.status.candidate_revision.name == model
    )
    return undone.status.message


async def refused(story: Story, name: str) -> str:
    """Make one of the bad artifacts, ask for it, and return what is said, its URI as %s."""
    file, make, _ = BAD[name]
    path = story.folder / "models" / file
    make(path)
    resource = a_model(name, namespace=NAMESPACE)
    del resource.spec.deployable_artifact_uri[:]
    resource.spec.deployable_artifact_uri.append(f"file://{path}")
    await story.client.create(resource)
    return (await until_undone(story, name)).replace(f"file://{path}", "%s")


async def try_again(story: Story, model: str) -> None:
    """Do what the message says, and wait until the model is live."""
    deployment = await story.client.get(v2.Deployment, DEPLOYMENT)
    deployment.metadata.annotations[RETRY] = "1"
    await story.client.apply(deployment)
    await story.until(lambda now: is_complete(now, model))


async def is_served(story: Story) -> bool:
    async with HttpClient() as http:
        answer = await http.request("POST", story.url, timeout_s=10, body=REQUEST.encode())
    return answer.status == 200 and answer.json()["outputs"][0]["data"] == [42.0]


def leftovers(story: Story) -> list[Path]:
    """Return what downloads have left behind, and what escaped."""
    cache = story.plane.data / "clusters" / "c1" / NAMESPACE / "server" / "cache"
    half = list((cache / "tmp").glob("*"))
    return [*half, *story.folder.rglob("evil"), *cache.rglob("readme.txt")]


async def test_bad_models_are_said_and_the_current_one_is_served_on(tmp_path: Path) -> None:
    async with a_story(tmp_path, settings=settings()) as story:
        await story.model("good")
        await story.server(clusters=("c1",), replicas=1)
        await story.roll("good")

        said = {name: await refused(story, name) for name in BAD}

        assert said == {
            name: f"rollout of {name} failed ({text}){AGAIN % name}"
            for name, (_, _, text) in BAD.items()
        }
        assert await is_served(story)
        assert leftovers(story) == []

        await story.model("refuses", fails="weights are missing")
        assert "weights are missing" in await until_undone(story, "refuses")

        await story.model("endless", load_s=25)
        message = await until_undone(story, "endless")
        assert message == (
            "rollout of endless failed (CanaryRolloutComplete-c1: CanaryLoading: model endless on "
            "replica triton-server-c1-0 of cluster c1: LOADING loading (still failing after "
            f"{BUDGET})){AGAIN % 'endless'}"
        )
        assert await is_served(story)

        await story.model("better")
        await story.roll("better")
        assert await is_served(story)


async def test_a_repaired_artifact_is_rolled_out_when_asked_again(tmp_path: Path) -> None:
    async with a_story(tmp_path, settings=settings()) as story:
        await story.model("good")
        await story.server(clusters=("c1",), replicas=1)
        await story.roll("good")
        await refused(story, "unversioned")

        (tmp_path / "models" / "unversioned" / "readme.txt").unlink()
        (tmp_path / "models" / "unversioned").rmdir()
        write_model(tmp_path / "models", "unversioned")
        await try_again(story, "unversioned")
        assert await is_served(story)


async def test_a_long_load_holds_up_no_connection_of_other_models(tmp_path: Path) -> None:
    """Half of these would hang as long as the load, were it asked for over Triton's HTTP port."""
    async with a_story(tmp_path, settings=settings()) as story, AsyncExitStack() as stack:
        await story.model("good")
        await story.server(clusters=("c1",), replicas=1)
        await story.roll("good")
        view = await story.server_view()
        url = f"http://{view.clusters[0].replicas[0].address}/v2/models/good/infer"
        clients = [await stack.enter_async_context(HttpClient()) for _ in range(32)]
        assert await answers(clients, url) == {200}

        await story.model("endless", load_s=6)
        await story.ask("endless")
        await story.until(lambda now: is_loading(now, "CanaryRolloutComplete-c1"))

        assert await answers(clients, url) == {200}
        assert await is_served(story)
        await story.until(lambda now: is_complete(now, "endless"))


async def answers(clients: list[HttpClient], url: str) -> set[int]:
    """Ask on every kept-alive connection at once; return the statuses."""
    asked = (each.request("POST", url, timeout_s=4, body=REQUEST.encode()) for each in clients)
    return {answer.status for answer in await asyncio.gather(*asked)}


def is_loading(deployment: v2.Deployment, type_: str) -> bool:
    found = find_condition(deployment.status.conditions, type_)
    return found is not None and found.message.endswith("LOADING loading")
