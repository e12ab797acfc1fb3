"""The engine against the outcome table of the extension guide, section 1."""

import pytest

from maserve.base.errors import Unavailable
from maserve.conditions import (
    FALSE,
    KILL_REASON,
    REQUEUE_S,
    TRUE,
    UNKNOWN,
    ActorList,
    Result,
    Timed,
    false_condition,
    find_condition,
    put_condition,
    run_engine,
    unknown_condition,
)
from maserve.testing.actors_fake import DueActor, ScriptedActor
from maserve.testing.builders import a_condition, a_deployment
from maserve.wire import api, v2


def plugin(*actors: ScriptedActor) -> ActorList[v2.Deployment]:
    return ActorList[v2.Deployment](actors)


@pytest.mark.parametrize(
    ("actors", "expected"),
    [
        pytest.param([], Result(satisfied=True, terminal=True), id="no-actor-is-satisfied"),
        pytest.param(
            [ScriptedActor("A", sees=TRUE), ScriptedActor("B", sees=TRUE)],
            Result(satisfied=True, terminal=True, moved=True),
            id="every-retrieve-true",
        ),
        pytest.param(
            [ScriptedActor("A", sees=TRUE), ScriptedActor("B", sees=UNKNOWN, does=FALSE)],
            Result(terminal=True, moved=True),
            id="run-false",
        ),
        pytest.param(
            [ScriptedActor("A", sees=FALSE, does=FALSE, reason=KILL_REASON)],
            Result(terminal=True, killed=True, moved=True),
            id="run-false-with-the-kill-reason",
        ),
        pytest.param(
            [ScriptedActor("A", sees=UNKNOWN, does=UNKNOWN)],
            Result(moved=True, requeue_s=REQUEUE_S),
            id="run-unknown",
        ),
        pytest.param(
            [ScriptedActor("A", sees=FALSE, does=TRUE)],
            Result(moved=True, requeue_s=REQUEUE_S),
            id="run-true",
        ),
        pytest.param(
            [ScriptedActor("A", sees=Unavailable("away"))],
            Result(terminal=True, moved=True, error="A: away"),
            id="retrieve-raised",
        ),
        pytest.param(
            [ScriptedActor("A", sees=UNKNOWN, does=Unavailable("away"))],
            Result(terminal=True, moved=True, error="A: away"),
            id="run-raised",
        ),
    ],
)
async def test_the_outcome_of_a_pass_is_the_guides(
    actors: list[ScriptedActor], expected: Result
) -> None:
    assert await run_engine(plugin(*actors), a_deployment()) == expected


async def test_only_the_first_unmet_actor_runs_and_every_actor_is_retrieved() -> None:
    met = ScriptedActor("A", sees=TRUE)
    first, second = ScriptedActor("B", sees=UNKNOWN), ScriptedActor("C", sees=FALSE)

    await run_engine(plugin(met, first, second), a_deployment())

    assert (met.calls, first.calls, second.calls) == (
        ["retrieve"],
        ["retrieve", "run"],
        ["retrieve"],
    )


async def test_a_run_that_ends_true_does_not_let_the_next_actor_run() -> None:
    later = ScriptedActor("B", sees=UNKNOWN)

    await run_engine(plugin(ScriptedActor("A", sees=UNKNOWN, does=TRUE), later), a_deployment())

    assert later.calls == ["retrieve"]


async def test_every_actors_latest_condition_is_put_in_order() -> None:
    deployment = a_deployment()

    await run_engine(
        plugin(
            ScriptedActor("A", sees=TRUE),
            ScriptedActor("B", sees=UNKNOWN, does=FALSE),
            ScriptedActor("C", sees=UNKNOWN, does=TRUE),
        ),
        deployment,
    )

    assert [(c.type, c.status) for c in deployment.status.conditions] == [
        ("A", TRUE),
        ("B", FALSE),
        ("C", UNKNOWN),
    ]


class Waiting:
    """Says one thing when it looks and another when it acts, at the time it is told."""

    type = "A"

    def __init__(self) -> None:
        self.now_s = 100.0

    async def retrieve(self, _resource: v2.Deployment, previous: api.Condition) -> api.Condition:
        return unknown_condition(previous, "seen", "Looked", self.now_s)

    async def run(self, _resource: v2.Deployment, previous: api.Condition) -> api.Condition:
        return false_condition(previous, "done", "Acted", self.now_s)


async def test_a_pass_that_changes_nothing_leaves_the_time_of_the_last_change() -> None:
    deployment, actor = a_deployment(), Waiting()
    await run_engine(ActorList[v2.Deployment]([actor]), deployment)
    actor.now_s = 200.0

    result = await run_engine(ActorList[v2.Deployment]([actor]), deployment)

    assert [c.last_updated_timestamp for c in deployment.status.conditions] == [100]
    assert not result.moved


async def test_an_actor_is_given_its_last_condition() -> None:
    deployment = a_deployment()
    put_condition(deployment.status.conditions, a_condition("A", FALSE, reason="Earlier"))
    actor = ScriptedActor("A", sees=TRUE)

    await run_engine(plugin(actor), deployment)

    assert (actor.given.status, actor.given.reason) == (FALSE, "Earlier")


async def test_an_actor_without_a_condition_starts_from_unknown() -> None:
    actor = ScriptedActor("A", sees=TRUE)

    await run_engine(plugin(actor), a_deployment())

    assert actor.given == api.Condition(type="A", status=UNKNOWN)


@pytest.mark.parametrize(
    "failing",
    [
        pytest.param(ScriptedActor("B", sees=Unavailable("away")), id="in-retrieve"),
        pytest.param(ScriptedActor("B", sees=FALSE, does=Unavailable("away")), id="in-run"),
    ],
)
async def test_an_error_ends_the_pass_and_keeps_the_failing_actors_old_condition(
    failing: ScriptedActor,
) -> None:
    deployment = a_deployment()
    old = a_condition("B", TRUE, reason="Earlier")
    put_condition(deployment.status.conditions, old)
    later = ScriptedActor("C", sees=TRUE)

    await run_engine(plugin(ScriptedActor("A", sees=TRUE), failing, later), deployment)

    assert find_condition(deployment.status.conditions, "B") == old
    assert find_condition(deployment.status.conditions, "A") is not None
    assert later.calls == []


async def test_a_bug_in_an_actor_is_not_taken_for_an_outcome() -> None:
    class Broken(ScriptedActor):
        async def retrieve(self, resource: v2.Deployment, previous: api.Condition) -> api.Condition:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await run_engine(plugin(Broken("A", sees=TRUE)), a_deployment())


async def test_an_unchanged_pass_has_not_moved() -> None:
    deployment = a_deployment()
    await run_engine(plugin(ScriptedActor("A", sees=UNKNOWN, reason="Waiting")), deployment)

    again = await run_engine(plugin(ScriptedActor("A", sees=UNKNOWN, reason="Waiting")), deployment)

    assert again == Result(moved=False, requeue_s=REQUEUE_S)


async def test_a_satisfied_pass_that_changes_nothing_has_not_moved() -> None:
    deployment = a_deployment()
    await run_engine(plugin(ScriptedActor("A", sees=TRUE)), deployment)

    again = await run_engine(plugin(ScriptedActor("A", sees=TRUE)), deployment)

    assert again == Result(satisfied=True, terminal=True, moved=False)


async def test_a_new_reason_counts_as_movement() -> None:
    deployment = a_deployment()
    await run_engine(plugin(ScriptedActor("A", sees=UNKNOWN, reason="Waiting")), deployment)

    again = await run_engine(plugin(ScriptedActor("A", sees=UNKNOWN, reason="Loading")), deployment)

    assert again.moved


async def test_a_message_that_only_tells_time_does_not_count_as_movement() -> None:
    deployment = a_deployment()
    deployment.status.conditions.append(a_condition("A", UNKNOWN, message="1s of 5m"))

    class Soaking(ScriptedActor):
        async def run(self, resource: v2.Deployment, previous: api.Condition) -> api.Condition:
            previous.message = "2s of 5m"
            return previous

    again = await run_engine(plugin(Soaking("A", sees=UNKNOWN)), deployment)

    assert deployment.status.conditions[0].message == "2s of 5m"
    assert not again.moved


@pytest.mark.parametrize(
    ("due_s", "requeue_s"),
    [
        pytest.param(None, REQUEUE_S, id="only-an-event-tells"),
        pytest.param(2.5, 2.5, id="due-soon"),
        pytest.param(500.0, REQUEUE_S, id="due-late-is-bounded"),
        pytest.param(-1.0, 0.0, id="overdue"),
    ],
)
async def test_a_timed_actor_says_when_to_look_again(due_s: float | None, requeue_s: float) -> None:
    actor = DueActor("A", sees=UNKNOWN)
    actor.due_s = due_s

    result = await run_engine(plugin(actor), a_deployment())

    assert isinstance(actor, Timed)
    assert result.requeue_s == requeue_s
