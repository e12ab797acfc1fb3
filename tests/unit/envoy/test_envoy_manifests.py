"""Envoy's resources, pinned by golden files; `UPDATE_GOLDEN=1` writes them anew."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from maserve.base.keys import ClusterId
from maserve.envoy.bootstrap import build_argv, build_bootstrap, max_connections
from maserve.envoy.layout import Layout
from maserve.envoy.manifest import build_endpoints, build_listener, build_service_cluster, seconds
from maserve.envoy.route_manifest import TableRule, build_table
from maserve.envoy.types import Address, EnvoySettings, RouteRef, RouteRule

GOLDEN = Path(__file__).with_name("golden")
FOLDER = Path("/data/envoy")
SETTINGS = EnvoySettings(folder=FOLDER)
LAYOUT = Layout(FOLDER)
EAST = ClusterId("east")


def a_rule(match: str, rewrite: str, service: str, *, is_exact: bool = False) -> RouteRule:
    return RouteRule(
        match_path=match,
        is_exact=is_exact,
        rewrite_path=rewrite,
        is_full_rewrite=is_exact,
        service=service,
    )


def rules_of(cluster: ClusterId | None, *rules: RouteRule) -> list[TableRule]:
    ref = RouteRef(cluster=cluster, namespace="team", name="r")
    return [TableRule(ref=ref, rule=rule, is_shadowed=False) for rule in rules]


def a_gateway_table() -> dict[str, Any]:
    rules = rules_of(
        None,
        a_rule("/demo", "/cluster/demo", "demo-endpoints", is_exact=True),
        a_rule("/demo/dep-1", "/cluster/demo/dep-1", "demo-endpoints"),
    )
    return build_table(None, rules, SETTINGS)


def a_cluster_table() -> dict[str, Any]:
    rules = rules_of(
        EAST,
        a_rule("/cluster/demo", "/v2", "demo-inference-service", is_exact=True),
        a_rule("/cluster/demo/dep-1", "/v2/models/m1", "demo-inference-service"),
    )
    return build_table(EAST, rules, SETTINGS)


def a_listener(table: str, address: Address, *, is_gateway: bool) -> dict[str, Any]:
    return build_listener(
        table,
        address=address,
        routes_file=LAYOUT.routes(table),
        is_gateway=is_gateway,
        settings=SETTINGS,
    )


MANIFESTS: dict[str, Callable[[], Any]] = {
    "bootstrap": lambda: build_bootstrap(LAYOUT, FOLDER / "admin.sock", open_files=1_000_000),
    "argv": lambda: list(build_argv(Path("/bin/envoy"), LAYOUT, SETTINGS)),
    "gateway_listener": lambda: a_listener("gateway", SETTINGS.gateway, is_gateway=True),
    "cluster_listener": lambda: a_listener(
        "cluster/east", Address(host="127.0.0.1", port=9001), is_gateway=False
    ),
    "gateway_table": a_gateway_table,
    "cluster_table": a_cluster_table,
    "replicas_cluster": lambda: build_service_cluster(
        "service/east/team/s",
        endpoints_file=LAYOUT.endpoints("service/east/team/s"),
        is_ingress=False,
        settings=SETTINGS,
    ),
    "ingress_cluster": lambda: build_service_cluster(
        "service//team/s",
        endpoints_file=LAYOUT.endpoints("service//team/s"),
        is_ingress=True,
        settings=SETTINGS,
    ),
    "endpoints": lambda: build_endpoints("s", [Address(host="127.0.0.1", port=8000)]),
    "no_endpoints": lambda: build_endpoints("s", []),
}


@pytest.mark.parametrize("name", MANIFESTS)
def test_manifest_is_as_pinned(name: str) -> None:
    text = json.dumps(MANIFESTS[name](), indent=2) + "\n"
    path = GOLDEN / f"{name}.json"
    os.environ.get("UPDATE_GOLDEN") and path.write_text(text)
    assert text == path.read_text()


def test_longer_paths_are_compared_before_shorter_ones_and_exact_ones_first() -> None:
    rules = rules_of(
        EAST,
        a_rule("/cluster/a/b", "/v2/models/m", "s"),
        a_rule("/cluster/a/bc", "/v2/models/n", "s"),
        a_rule("/cluster/a", "/v2", "s", is_exact=True),
    )
    routes = build_table(EAST, rules, SETTINGS)["virtual_hosts"][0]["routes"]
    paths = [route["match"].get("path_separated_prefix") for route in routes if "route" in route]
    below_bc = ["/cluster/a/bc", "/cluster/a/bc", "/cluster/a/bc/v2"]
    assert paths == [None, *below_bc, "/cluster/a/b", "/cluster/a/b", "/cluster/a/b/v2"]


def test_shadowed_rule_is_not_served_by_the_gateway() -> None:
    (rule,) = rules_of(None, a_rule("/demo", "/cluster/demo", "s", is_exact=True))
    shadowed = TableRule(ref=rule.ref, rule=rule.rule, is_shadowed=True)
    routes = build_table(None, [shadowed], SETTINGS)["virtual_hosts"][0]["routes"]
    assert [route for route in routes if "route" in route] == []


def route_of(table: dict[str, Any], path: str) -> dict[str, Any]:
    """Return the first route below a path."""
    routes: list[dict[str, Any]] = table["virtual_hosts"][0]["routes"]
    return next(each for each in routes if each["match"].get("path_separated_prefix") == path)


def test_prefix_rule_with_a_full_rewrite_replaces_the_whole_path() -> None:
    rule = RouteRule(
        match_path="/a/b",
        is_exact=False,
        rewrite_path="/v2",
        is_full_rewrite=True,
        service="s",
    )
    route = route_of(build_table(None, rules_of(None, rule), SETTINGS), "/a/b")
    assert route["route"]["regex_rewrite"]["substitution"] == "/v2"


def test_a_request_is_limited_by_idleness_alone_and_not_at_all_with_zero() -> None:
    unlimited = EnvoySettings(folder=FOLDER, idle_timeout_s=0)
    listener = build_listener(
        "gateway",
        address=SETTINGS.gateway,
        routes_file=LAYOUT.routes("gateway"),
        is_gateway=True,
        settings=unlimited,
    )
    manager = listener["filter_chains"][0]["filters"][0]["typed_config"]
    table = build_table(None, rules_of(None, a_rule("/a/b", "/c", "s")), unlimited)
    assert manager["stream_idle_timeout"] == "0s"
    action = route_of(table, "/a/b")["route"]
    assert (action["timeout"], action["idle_timeout"]) == ("0s", "0s")


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0s"), (1, "1s"), (0.25, "0.25s"), (300.0, "300s")]
)
def test_durations_are_as_envoy_reads_them(value: float, text: str) -> None:
    assert seconds(value) == text


def test_admin_socket_of_a_long_path_is_short_and_the_same_each_time(tmp_path: Path) -> None:
    long = Layout(tmp_path / ("x" * 120))
    short = long.admin_socket(Path("/tmp"))
    assert len(bytes(short)) < 100
    assert short == long.admin_socket(Path("/tmp"))
    assert Layout(Path("/data")).admin_socket(Path("/tmp")) == Path("/data/admin.sock")


@pytest.mark.parametrize(
    ("open_files", "connections"), [(64, 100), (4096, 1920), (20_000, 9872), (1_048_576, 50_000)]
)
def test_no_more_connections_are_taken_than_there_are_descriptors_for(
    open_files: int, connections: int
) -> None:
    assert max_connections(open_files) == connections
