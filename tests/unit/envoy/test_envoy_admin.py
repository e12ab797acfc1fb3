"""What is read from Envoy's admin endpoint, and how its binary is found."""

import stat
import sys
from pathlib import Path

import pytest

from maserve.base.errors import Denied, Invalid, Unavailable
from maserve.envoy.admin import Admin
from maserve.envoy.bootstrap import find_binary
from maserve.envoy.listening import check_address_free
from maserve.envoy.process import ensure_socket_folder
from maserve.envoy.types import Address
from maserve.host import Answer


class FixedHttp:
    def __init__(self, text: str, status: int = 200) -> None:
        self._answer = Answer(status=status, body=text.encode())
        self.asked: list[tuple[str, str]] = []

    async def request(self, method: str, url: str, *, timeout_s: float) -> Answer:
        self.asked.append((method, url))
        return self._answer


async def test_versions_are_read_by_scope() -> None:
    text = 'cluster.service//team/s.version_text: "ab"\nlistener_manager.lds.version_text: ""\n'
    versions = await Admin(FixedHttp(text)).versions()
    assert versions == {"cluster.service//team/s": "ab", "listener_manager.lds": ""}


async def test_rejections_leave_zeros_out() -> None:
    text = "a.update_rejected: 0\nb.c.update_rejected: 2\n"
    assert await Admin(FixedHttp(text)).rejections() == {"b.c": 2}


async def test_requests_in_flight_are_those_of_all_listeners_but_the_admin_one() -> None:
    text = (
        "http.gateway.downstream_rq_active: 2\n"
        "http.cluster/east.downstream_rq_active: 3\n"
        "http.admin.downstream_rq_active: 1\n"
    )
    assert await Admin(FixedHttp(text)).active_requests() == 5


async def test_open_listeners_are_told_by_name() -> None:
    text = "gateway::127.0.0.1:8880\ncluster/east::127.0.0.1:20001\n"
    assert await Admin(FixedHttp(text)).listeners() == ("gateway", "cluster/east")


async def test_drain_is_graceful() -> None:
    http = FixedHttp("OK")
    await Admin(http).drain()
    assert http.asked == [("POST", "http://envoy/drain_listeners?graceful")]


async def test_unexpected_answer_is_unavailable() -> None:
    with pytest.raises(Unavailable, match="answered 500 to /stats"):
        await Admin(FixedHttp("", status=500)).versions()


@pytest.mark.parametrize(("status", "is_ready"), [(200, True), (503, False)])
async def test_readiness_is_the_status(status: int, is_ready: bool) -> None:
    assert await Admin(FixedHttp("", status=status)).is_ready() is is_ready


def test_missing_envoy_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setattr(sys, "path_importer_cache", {})
    with pytest.raises(Unavailable, match=r"install maserve\[embedded\]"):
        find_binary()


def test_binary_that_is_not_executable_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    binary = tmp_path / "envoy" / "_bin" / "envoy"
    binary.parent.mkdir(parents=True)
    binary.touch(mode=0o600)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    with pytest.raises(Unavailable, match=str(binary)):
        find_binary()


def test_socket_folder_is_ours_alone(tmp_path: Path) -> None:
    ensure_socket_folder(tmp_path / "new")
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700


def test_socket_folder_that_is_a_link_or_open_to_all_is_denied(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(Denied, match="link is not safe"):
        ensure_socket_folder(tmp_path / "link")
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    with pytest.raises(Denied, match="open is not safe"):
        ensure_socket_folder(tmp_path / "open")


def test_address_of_nobody_here_is_invalid_and_named() -> None:
    with pytest.raises(Invalid, match=r"--gateway-address 203\.0\.113\.7:1 fails"):
        check_address_free(Address(host="203.0.113.7", port=1), "--gateway-address")
