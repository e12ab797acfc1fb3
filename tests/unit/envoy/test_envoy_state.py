"""What shall be served: its changes and its JSON form."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maserve.base.errors import Invalid
from maserve.base.keys import ClusterId
from maserve.envoy.state import (
    State,
    parse_state,
    render_state,
    with_listener,
    with_moved_listener,
    with_route,
    with_service,
    without_idle_listeners,
    without_route,
    without_service,
)
from maserve.envoy.types import Address, RouteRef, RouteRule, ServiceRef

EAST = ClusterId("east")
ROUTE = RouteRef(cluster=EAST, namespace="team", name="demo-traffic")
OTHER = RouteRef(cluster=EAST, namespace="team", name="other-traffic")
SERVICE = ServiceRef(cluster=None, namespace="team", name="demo-endpoints")
REPLICAS = ServiceRef(cluster=EAST, namespace="team", name="demo-inference-service")


def a_rule(path: str = "/cluster/demo/dep") -> RouteRule:
    return RouteRule(
        match_path=path,
        is_exact=False,
        rewrite_path="/v2/models/m",
        is_full_rewrite=False,
        service="demo-inference-service",
    )


names = st.sampled_from(["a", "b", "c"])
clusters = st.none() | st.sampled_from([ClusterId("east"), ClusterId("west")])
rules = st.builds(
    RouteRule,
    match_path=st.sampled_from(["/a", "/a/b", "/c"]),
    is_exact=st.booleans(),
    rewrite_path=st.sampled_from(["/v2", "/v2/models/m"]),
    is_full_rewrite=st.booleans(),
    service=names,
    service_port=st.integers(1, 65535),
)
addresses = st.builds(
    Address,
    host=st.sampled_from(["127.0.0.1", "::1"]),
    port=st.integers(1, 65535),
    label=st.sampled_from(["", "east"]),
)
changes = st.one_of(
    st.tuples(
        st.just(with_route),
        st.builds(RouteRef, cluster=clusters, namespace=names, name=names),
        st.lists(rules, max_size=3),
    ),
    st.tuples(
        st.just(with_service),
        st.builds(ServiceRef, cluster=clusters, namespace=names, name=names),
        st.lists(addresses, max_size=3),
    ),
    st.tuples(
        st.just(with_listener),
        st.sampled_from([ClusterId("east"), ClusterId("west")]),
        st.integers(1, 65535),
    ),
)


@given(st.lists(changes, max_size=12))
def test_state_is_the_same_after_it_was_written_and_read(steps: list) -> None:  # type: ignore[type-arg] # a mix of three shapes
    state = State()
    for change, what, value in steps:
        state = change(state, what, value)
    assert parse_state(render_state(state), source="x") == state


def test_route_keeps_its_place_when_its_rules_change() -> None:
    state = with_route(with_route(State(), ROUTE, []), OTHER, [])
    changed = with_route(state, ROUTE, [a_rule()])
    assert [changed.routes[ref].order for ref in (ROUTE, OTHER)] == [1, 2]
    assert changed.routes[ROUTE].rules == (a_rule(),)


def test_route_made_again_is_the_youngest() -> None:
    state = with_route(with_route(State(), ROUTE, []), OTHER, [])
    again = with_route(without_route(state, ROUTE), ROUTE, [])
    assert again.routes[ROUTE].order > again.routes[OTHER].order


def test_addresses_are_sorted_and_each_is_there_once() -> None:
    one, two = Address(host="127.0.0.1", port=1), Address(host="127.0.0.1", port=2)
    state = with_service(State(), REPLICAS, [two, one, two])
    assert state.services[REPLICAS] == (one, two)


@pytest.mark.parametrize(
    "change",
    [
        lambda state: without_route(state, ROUTE),
        lambda state: without_service(state, SERVICE),
        without_idle_listeners,
    ],
    ids=["route", "service", "listener"],
)
def test_removing_what_is_absent_changes_nothing(change) -> None:  # type: ignore[no-untyped-def] # three lambdas
    assert change(State()) == State()


@pytest.mark.parametrize(
    "about_east",
    [
        lambda state: with_route(state, ROUTE, []),
        lambda state: with_service(state, REPLICAS, []),
        lambda state: with_service(
            state, SERVICE, [Address(host="127.0.0.1", port=9, label="east")]
        ),
    ],
    ids=["route", "replicas", "ingress"],
)
def test_listener_is_open_as_long_as_something_is_about_its_cluster(about_east) -> None:  # type: ignore[no-untyped-def] # three lambdas
    state = with_listener(about_east(State()), EAST, 9)
    assert without_idle_listeners(state) == state


def test_listener_of_an_empty_cluster_closes_unless_it_is_to_be_kept() -> None:
    state = with_listener(State(), EAST, 9)
    assert without_idle_listeners(state).listeners == {}
    assert without_idle_listeners(state, keep={EAST}).listeners == {EAST: 9}


def test_moved_listener_takes_its_published_address_along() -> None:
    old, new = Address(host="127.0.0.1", port=9, label="east"), 10
    state = with_service(with_listener(State(), EAST, 9), SERVICE, [old])
    state = with_service(state, REPLICAS, [old])
    moved = with_moved_listener(state, EAST, new)
    assert moved.listeners == {EAST: new}
    assert moved.services[SERVICE] == (Address(host="127.0.0.1", port=new, label="east"),)
    assert moved.services[REPLICAS] == (old,)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"format": 2}',
        b"\xff",
        json.dumps({"format": 1, "nextOrder": 1, "listeners": {}, "services": [{}], "routes": []}),
    ],
    ids=["empty", "list", "cut", "newer format", "no text", "incomplete"],
)
def test_broken_state_is_invalid_and_named(text: str | bytes) -> None:
    with pytest.raises(Invalid, match=r"state\.json is no data plane state"):
        parse_state(text, source="state.json")
