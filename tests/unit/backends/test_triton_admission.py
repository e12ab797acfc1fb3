"""Which replicas get traffic: published in order, until the data plane agrees."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from maserve.backends.triton.local.admission import Admission
from maserve.base.clock import SystemClock
from maserve.base.errors import Unavailable
from maserve.base.keys import ClusterId, Key
from maserve.base.tasks import run_until
from maserve.testing.triton_stage import RecordingEndpoints, until

ONE, TWO = ("127.0.0.1", 1), ("127.0.0.1", 2)


@dataclass
class Plane:
    """An admission that runs, and the data plane it talks to."""

    admission: Admission
    endpoints: RecordingEndpoints
    settled: list[bool]


@pytest.fixture
async def plane() -> AsyncIterator[Plane]:
    endpoints, settled = RecordingEndpoints(), list[bool]()
    admission = Admission(
        ClusterId("c1"),
        Key("default", "is1"),
        endpoints=endpoints,
        clock=SystemClock(),
        on_settled=lambda: settled.append(True),
    )
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(run_until(stop, admission.run()))
        yield Plane(admission, endpoints, settled)
        stop.set()


async def test_first_publication_is_made_even_if_it_is_empty(plane: Plane) -> None:
    assert await plane.admission.settled(timeout_s=1)
    assert plane.endpoints.told == [()]
    assert plane.settled == [True]


async def test_addresses_are_published_in_order(plane: Plane) -> None:
    plane.admission.want((TWO, ONE))
    assert await plane.admission.settled(timeout_s=1)

    assert plane.endpoints.now == {("c1", "default", "is1-inference-service"): (ONE, TWO)}


async def test_address_has_left_once_the_data_plane_says_so(plane: Plane) -> None:
    plane.admission.want((ONE, TWO))
    await plane.admission.settled(timeout_s=1)
    assert not await plane.admission.left(ONE, timeout_s=0.01)
    plane.admission.want((TWO,))

    assert await plane.admission.left(ONE, timeout_s=1)
    assert plane.endpoints.ports() == [2]


async def test_refusal_is_tried_again_and_until_then_nothing_is_known(plane: Plane) -> None:
    await plane.admission.settled(timeout_s=1)
    plane.endpoints.failures = [Unavailable("away"), Unavailable("away")]
    plane.admission.want((ONE,))
    await until(lambda: failures_left(plane, 0))
    assert not await plane.admission.left(TWO, timeout_s=0)
    assert plane.admission.problem == "away"

    assert await plane.admission.settled(timeout_s=2)
    assert (plane.endpoints.ports(), plane.admission.problem) == ([1], "")


async def failures_left(plane: Plane, count: int) -> bool:
    return len(plane.endpoints.failures) == count
