import random
import socket
from pathlib import Path

import pytest

from maserve.base.errors import Invalid
from maserve.host import PortBook
from maserve.host.ports import _candidates, is_free


def a_book(folder: Path) -> PortBook:
    return PortBook(folder / "ports.json", rng=random.Random(7))


def test_ports_are_remembered_across_restarts(tmp_path: Path) -> None:
    ports = a_book(tmp_path).allocate("a", 3)

    assert len(set(ports)) == 3
    assert a_book(tmp_path).allocate("a", 3) == ports
    assert a_book(tmp_path).owners() == ("a",)


def test_owners_never_share_a_port(tmp_path: Path) -> None:
    book = a_book(tmp_path)

    assert set(book.allocate("a", 3)).isdisjoint(book.allocate("b", 3))


def test_port_in_use_is_not_given(tmp_path: Path) -> None:
    (port,) = a_book(tmp_path / "one").allocate("a", 1)
    with socket.create_server(("127.0.0.1", port)):
        assert not is_free(port)
        assert a_book(tmp_path / "two").allocate("a", 1) != (port,)


def test_replaced_ports_are_others(tmp_path: Path) -> None:
    book = a_book(tmp_path)
    before = book.allocate("a", 3)
    after = book.replace("a", 3)

    assert set(before).isdisjoint(after)
    assert book.allocate("a", 3) == after


def test_released_ports_are_forgotten(tmp_path: Path) -> None:
    book = a_book(tmp_path)
    book.allocate("a", 1)
    book.release("a")
    book.release("a")

    assert a_book(tmp_path).owners() == ()


def test_broken_book_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "ports.json").write_text("[]")
    with pytest.raises(Invalid, match="is not a list of ports by owner"):
        a_book(tmp_path).allocate("a", 1)

    assert (tmp_path / "ports.json").read_text() == "[]"


@pytest.mark.parametrize(
    ("ephemeral", "first", "last"),
    [
        pytest.param((32768, 60999), 10000, 65535, id="the kernel's default"),
        pytest.param((1024, 65535), 20000, 29999, id="nothing left outside"),
        pytest.param((1024, 60999), 61000, 65535, id="only above"),
    ],
)
def test_ports_lie_outside_the_ephemeral_range(
    ephemeral: tuple[int, int], first: int, last: int
) -> None:
    ports = _candidates(ephemeral)

    assert (ports[0], ports[-1]) == (first, last)


def test_ports_are_free_while_nobody_listens_on_any_of_them(tmp_path: Path) -> None:
    book = a_book(tmp_path)
    ports = book.allocate("a", 2)

    assert book.are_free(ports)
    with socket.create_server(("127.0.0.1", ports[1])):
        assert not book.are_free(ports)
