"""Where gateway and metrics may listen."""

import pytest

from maserve.base.errors import Invalid
from maserve.cmd.addresses import check_different, parse_address, settle_address


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:8880", ("127.0.0.1", 8880)),
        ("localhost:8880", ("127.0.0.1", 8880)),
        ("[::1]:8880", ("::1", 8880)),
        ("127.0.0.9:0", ("127.0.0.9", 0)),
    ],
)
def test_a_loopback_address_is_taken(text: str, address: tuple[str, int]) -> None:
    assert parse_address(text, "--gateway-address") == address


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("8880", "is not an IP address and a port: '8880'"),
        ("127.0.0.1", "is not host:port: '127.0.0.1'"),
        ("127.0.0.1:", "is not host:port: '127.0.0.1:'"),
        ("127.0.0.1:http", "is not host:port: '127.0.0.1:http'"),
        ("127.0.0.1:65536", "is not host:port: '127.0.0.1:65536'"),
        ("127.0.0.1:-1", "is not host:port: '127.0.0.1:-1'"),
        ("127.0.0.1:٣", "is not host:port: '127.0.0.1:٣'"),
        ("example.com:80", "is not an IP address and a port: 'example.com:80'"),
        (
            "0.0.0.0:8880",
            "must be a loopback address until there is authentication: '0.0.0.0:8880'",
        ),
        ("[::]:8880", "must be a loopback address until there is authentication: '[::]:8880'"),
    ],
)
def test_any_other_address_is_refused_naming_the_option(text: str, problem: str) -> None:
    with pytest.raises(Invalid) as caught:
        parse_address(text, "--gateway-address")
    assert str(caught.value) == f"--gateway-address {problem}"


@pytest.mark.parametrize(
    ("text", "settled"),
    [
        ("localhost:8880", "127.0.0.1:8880"),
        ("[::1]:8880", "[::1]:8880"),
        ("127.0.0.1:8880", "127.0.0.1:8880"),
    ],
)
def test_an_address_is_settled_to_a_number(text: str, settled: str) -> None:
    assert settle_address(text, "--gateway-address") == settled


def test_port_0_becomes_a_free_one() -> None:
    host, _, port = settle_address("localhost:0", "--metrics-address").partition(":")
    assert (host, 0 < int(port) < 65536) == ("127.0.0.1", True)


def test_two_settings_that_are_one_address_are_both_named() -> None:
    one = ("127.0.0.1", 8880)
    check_different(api_address=("127.0.0.1", 0), metrics_address=("127.0.0.1", 0))
    with pytest.raises(Invalid) as caught:
        check_different(gateway_address=one, metrics_address=one)
    assert str(caught.value) == (
        "--metrics-address is the same as --gateway-address; choose another one"
    )
