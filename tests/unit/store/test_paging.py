"""Tokens that continue a list come from outside: whatever they hold, they are read or refused."""

import base64

import pytest

from maserve.base.errors import Invalid
from maserve.base.keys import Key
from maserve.store.paging import parse_query
from maserve.store.protocol import Selection
from maserve.wire import v2


def a_token(body: bytes) -> str:
    return base64.urlsafe_b64encode(body).decode()


def test_a_token_says_where_to_go_on() -> None:
    query = parse_query(v2.Model, Selection(next=a_token(b"Model//7/ns/m")))
    assert (query.version, query.after) == (7, Key("ns", "m"))


@pytest.mark.parametrize(
    "token",
    [
        "no token",
        "\u00e9",
        a_token(b"\xff"),
        a_token(b"[" * 100_000),
        a_token(b"Model//7/ns"),
        a_token(b"Model//7/ns/m/more"),
        a_token(b"Model//-1/ns/m"),
        a_token(b"Model//x/ns/m"),
        a_token(b"Model//" + b"9" * 30 + b"/ns/m"),
        a_token(b"Deployment//7/ns/m"),
        a_token(b"Model/other/7/ns/m"),
    ],
    ids=range(11),
)
def test_what_is_no_token_is_refused(token: str) -> None:
    with pytest.raises(Invalid, match="continue is no token of this list"):
        parse_query(v2.Model, Selection(next=token))
