"""From one snapshot to the next without a route that points at nothing."""

from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from maserve.base.keys import ClusterId
from maserve.envoy.layout import Layout
from maserve.envoy.render import Renderer
from maserve.envoy.snapshot import Snapshot, find_owner, steps, table_rules
from maserve.envoy.state import State, with_listener, with_route, with_service
from maserve.envoy.types import Address, EnvoySettings, RouteRef, RouteRule, ServiceRef

SETTINGS = EnvoySettings(folder=Path("/data/envoy"))
LAYOUT = Layout(SETTINGS.folder)
CLUSTERS = [ClusterId("east"), ClusterId("west")]
NAMES = ["a", "b", "c"]


def a_rule(path: str, service: str) -> RouteRule:
    return RouteRule(
        match_path=path,
        is_exact=False,
        rewrite_path="/v2/models/m",
        is_full_rewrite=False,
        service=service,
    )


def render(state: State) -> Snapshot:
    return Renderer(LAYOUT, SETTINGS).snapshot(state)


@st.composite
def states(draw: st.DrawFn) -> State:
    state = State()
    for local in sorted(draw(st.sets(st.sampled_from(CLUSTERS)))):
        state = with_listener(state, local, draw(st.sampled_from([9001, 9002])))
    places = st.tuples(st.none() | st.sampled_from(CLUSTERS), st.sampled_from(NAMES))
    for cluster, name in draw(st.lists(places, max_size=5)):
        service = draw(st.sampled_from(NAMES))
        ref = RouteRef(cluster=cluster, namespace="team", name=name)
        state = with_route(state, ref, [a_rule(f"/x/{name}", service)])
    for cluster, name in draw(st.lists(places, max_size=5)):
        ports = draw(st.lists(st.sampled_from([1, 2, 3])))
        service_ref = ServiceRef(cluster=cluster, namespace="team", name=name)
        state = with_service(state, service_ref, [Address(host="127.0.0.1", port=p) for p in ports])
    return state


def targets(snapshot: Snapshot) -> set[str]:
    """Return the clusters that routes point at."""
    return {
        route["route"]["cluster"]
        for table in snapshot.routes.values()
        for route in table["virtual_hosts"][0]["routes"]
        if "route" in route
    }


def each_pair(snapshots: Iterable[Snapshot]) -> list[tuple[Snapshot, Snapshot]]:
    listed = list(snapshots)
    return list(pairwise(listed))


@settings(max_examples=25, deadline=None)
@given(states(), states())
def test_steps_end_at_the_new_snapshot(before: State, after: State) -> None:
    old, new = render(before), render(after)
    assert ([old, *steps(old, new)])[-1] == new


@settings(max_examples=25, deadline=None)
@given(states(), states())
def test_no_step_has_a_route_without_its_cluster_or_a_listener_without_its_routes(
    before: State, after: State
) -> None:
    for step in steps(render(before), render(after)):
        assert targets(step) <= step.clusters.keys() == step.endpoints.keys()
        assert step.listeners.keys() == step.routes.keys()


@settings(max_examples=25, deadline=None)
@given(states(), states())
def test_what_envoy_still_routes_to_stays_until_it_has_taken_the_next_step(
    before: State, after: State
) -> None:
    # Files are taken one by one, so for a moment the old routes stand beside the new clusters.
    old, new = render(before), render(after)
    for earlier, later in each_pair([old, *steps(old, new)]):
        assert targets(earlier) <= later.clusters.keys()


@settings(max_examples=25, deadline=None)
@given(states())
def test_nothing_to_do_is_no_step(state: State) -> None:
    assert steps(render(state), render(state)) == ()


@settings(max_examples=25, deadline=None)
@given(states(), states())
def test_renderer_remembers_nothing_wrong(before: State, after: State) -> None:
    used = Renderer(LAYOUT, SETTINGS)
    used.files(used.snapshot(before))
    fresh = Renderer(LAYOUT, SETTINGS)
    assert used.files(used.snapshot(after)) == fresh.files(fresh.snapshot(after))


def test_older_route_owns_a_path_that_two_claim() -> None:
    older = RouteRef(cluster=None, namespace="z", name="demo-discovery")
    younger = RouteRef(cluster=None, namespace="a", name="demo-discovery")
    state = with_route(State(), older, [a_rule("/demo/dep", "s")])
    state = with_route(state, younger, [a_rule("/demo/dep", "s"), a_rule("/demo/two", "s")])
    shadowed = [(rule.ref.namespace, rule.is_shadowed) for rule in table_rules(state, None)]
    assert shadowed == [("z", False), ("a", True), ("a", False)]
    owner = find_owner(state, younger)
    assert owner is not None
    assert (owner.ref, owner.rule.match_path) == (older, "/demo/dep")
    assert find_owner(state, older) is None


def test_routes_of_a_cluster_are_told_apart_by_namespace() -> None:
    east = CLUSTERS[0]
    one = RouteRef(cluster=east, namespace="one", name="demo-traffic")
    two = RouteRef(cluster=east, namespace="two", name="demo-traffic")
    state = with_route(State(), one, [a_rule("/cluster/demo/dep", "s")])
    state = with_route(state, two, [a_rule("/cluster/demo/dep", "s")])
    assert (find_owner(state, one), find_owner(state, two)) == (None, None)
