"""Where gateway and metrics may listen."""

import pytest

from maserve.base.errors import Invalid
from maserve.cmd.addresses import parse_address


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
