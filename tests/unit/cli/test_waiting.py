"""Waiting is driven by a watch, survives a broken one, and ends early where nothing can come."""

import pytest

from maserve.base.errors import Expired, NotFound, Unavailable
from maserve.base.keys import Key
from maserve.cli.api import Outside
from maserve.cli.goals import parse_goal
from maserve.cli.session import CommandError, Exit
from maserve.cli.wait import Wait, wait_for
from maserve.client import Change, ChangeType
from maserve.resource import Resource, get_kind
from maserve.testing.clock import LoopClock
from maserve.testing.command_line import CommandLine, FakeApi, FakeGateway, a_change
from maserve.wire import meta, v2

pytestmark = pytest.mark.looptime

SERVER = get_kind("InferenceServer")
KEY = Key("ns", "s")


def a_server(state: str = "CREATING", uid: str = "u1") -> v2.InferenceServer:
    return v2.InferenceServer(
        metadata=meta.ObjectMeta(name="s", namespace="ns", uid=uid),
        status=v2.InferenceServerStatus(state=f"INFERENCE_SERVER_STATE_{state}"),
    )


def modified(server: v2.InferenceServer) -> Change[Resource]:
    return a_change(ChangeType.MODIFIED, server)


def deleted(server: v2.InferenceServer) -> Change[Resource]:
    return a_change(ChangeType.DELETED, server)


async def wait(api: FakeApi, goal: str, *, timeout_s: float = 60.0, uid: str = "") -> list[str]:
    """Wait and return what was shown meanwhile."""
    shown: list[str] = []
    outside = Outside(connect=CommandLine().connect, post=FakeGateway().post, clock=LoopClock())
    order = Wait(key=KEY, goal=parse_goal(goal, SERVER), timeout_s=timeout_s, uid=uid)
    await wait_for(api, outside, SERVER, order, shown.append)
    return shown


def an_api(*servers: v2.InferenceServer) -> FakeApi:
    api = FakeApi()
    api.put(*servers)
    return api


async def test_a_goal_that_is_met_already_ends_at_once() -> None:
    assert await wait(an_api(a_server("SERVING")), "state=SERVING") == ["SERVING"]


async def test_changes_are_shown_until_the_goal_is_met() -> None:
    api = an_api(a_server())
    api.steps = [modified(a_server("CREATING")), modified(a_server("SERVING"))]
    assert await wait(api, "state=SERVING") == ["CREATING", "CREATING", "SERVING"]


async def test_a_missing_object_is_an_error() -> None:
    with pytest.raises(NotFound):
        await wait(an_api(), "state=SERVING")


async def test_a_failure_ends_the_wait_early() -> None:
    api = an_api(a_server())
    api.steps = [modified(a_server("FAILED"))]
    with pytest.raises(CommandError, match="cannot reach state=SERVING: state is FAILED") as caught:
        await wait(api, "state=SERVING")
    assert caught.value.code is Exit.FAILED


async def test_time_over_says_how_it_stands() -> None:
    with pytest.raises(CommandError, match=r"not at state=SERVING after 1m: CREATING") as caught:
        await wait(an_api(a_server()), "state=SERVING")
    assert caught.value.code is Exit.TIMEOUT


async def test_a_deleted_object_ends_the_wait_for_anything_else() -> None:
    api = an_api(a_server())
    api.steps = [deleted(a_server())]
    with pytest.raises(CommandError, match="was deleted while waiting"):
        await wait(api, "state=SERVING")


@pytest.mark.parametrize("error", [Unavailable("gone"), Expired("too old")])
async def test_a_broken_watch_is_begun_again(error: Exception) -> None:
    api = an_api(a_server())
    api.steps = [error, modified(a_server("SERVING"))]
    shown = await wait(api, "state=SERVING")
    assert shown == [
        "CREATING",
        f"lost the API server, trying again ({error})",
        "CREATING",
        "SERVING",
    ]


async def test_deletion_is_met_when_the_object_is_not_there() -> None:
    assert await wait(an_api(), "delete") == []


async def test_deletion_is_met_when_the_object_goes() -> None:
    api = an_api(a_server("DELETING"))
    api.steps = [deleted(a_server("DELETING"))]
    assert await wait(api, "delete") == ["DELETING"]


async def test_another_object_of_the_same_name_is_not_the_one_waited_for() -> None:
    assert await wait(an_api(a_server(uid="u2")), "delete", uid="u1") == []


async def test_a_deletion_missed_while_disconnected_is_noticed() -> None:
    api = an_api(a_server("DELETING"))
    api.steps = [Unavailable("gone")]
    api.on_watch = [lambda: None, api.objects.clear]
    assert (await wait(api, "delete"))[-1].startswith("lost the API server")
