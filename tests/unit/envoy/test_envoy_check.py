"""What the data plane refuses before Envoy would."""

import pytest

from maserve.base.errors import Invalid
from maserve.base.keys import ClusterId
from maserve.envoy.check import check_addresses, check_name, check_rules
from maserve.envoy.types import Address, RouteRef, RouteRule


def a_rule(match: str = "/demo/dep", rewrite: str = "/v2", service: str = "s") -> RouteRule:
    return RouteRule(
        match_path=match,
        is_exact=False,
        rewrite_path=rewrite,
        is_full_rewrite=False,
        service=service,
    )


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "demo",
        "/demo/",
        "//demo",
        "/demo//dep",
        "/demo/../v2",
        "/demo/.",
        "/demo?x",
        "/demo#x",
        "/demo/%2e",
        "/demo dep",
        "/demo/*",
        "/démo",
        "/demo\n",
    ],
)
def test_path_that_is_not_plain_is_invalid(path: str) -> None:
    with pytest.raises(Invalid, match=r"rules\[0\]\.match_path is not a plain path"):
        check_rules([a_rule(match=path)])
    with pytest.raises(Invalid, match=r"rules\[0\]\.rewrite_path is not a plain path"):
        check_rules([a_rule(rewrite=path)])


def test_plain_rules_pass() -> None:
    check_rules([a_rule("/demo"), a_rule("/demo/dep-1"), a_rule("/cluster/demo/Dep_2.x~y")])


def test_every_problem_is_told() -> None:
    with pytest.raises(Invalid) as raised:
        check_rules([a_rule("/a", "x", "No"), a_rule("/a")])
    fields = [problem.field for problem in raised.value.problems]
    assert fields == ["rules[0].rewrite_path", "rules[0].service", "rules[1].match_path"]


@pytest.mark.parametrize(
    ("host", "port"), [("localhost", 80), ("", 80), ("127.0.0.1", 0), ("127.0.0.1", 65536)]
)
def test_address_that_is_none_is_invalid(host: str, port: int) -> None:
    with pytest.raises(Invalid, match=r"addresses\[1\]"):
        check_addresses([Address(host="::1", port=1), Address(host=host, port=port)])


@pytest.mark.parametrize("cluster", [None, ClusterId("east")])
def test_names_that_are_labels_pass(cluster: ClusterId | None) -> None:
    check_name(RouteRef(cluster=cluster, namespace="team", name="a-1"))


@pytest.mark.parametrize("name", ["", "A", "a.b", "a/b", "-a", "a" * 64])
def test_names_that_are_no_labels_are_invalid(name: str) -> None:
    with pytest.raises(Invalid, match="is not a DNS label") as raised:
        check_name(RouteRef(cluster=ClusterId("a.b"), namespace=name, name=name))
    assert [problem.field for problem in raised.value.problems] == ["cluster", "namespace", "name"]
