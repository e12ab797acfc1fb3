"""The sender over real sockets: what is counted for what the server does."""

import json
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from maserve.base.clock import SystemClock
from maserve.testing.load import HttpSender, LoadSettings, OpenLoopLoad, main
from maserve.testing.load_results import LoadSummary

FAST = LoadSettings(rate_per_s=400, duration_s=0.05)
"""Twenty requests."""


class Server:
    """Answers each path in its own way, and remembers the client's ports."""

    def __init__(self) -> None:
        self.url = ""
        self.ports: list[int] = []

    async def handle(self, request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        self.ports.append(request.transport.get_extra_info("peername")[1])
        assert await request.json() == {"inputs": []}
        return getattr(self, request.path.strip("/"))(request)  # type: ignore[no-any-return]  # by name

    def good(self, _: web.Request) -> web.Response:
        return web.json_response({"model_name": "m1"})

    def unknown(self, _: web.Request) -> web.Response:
        return web.json_response({"error": "unknown model"}, status=404)

    def text(self, _: web.Request) -> web.Response:
        return web.Response(text="hello")

    def cut(self, request: web.Request) -> web.Response:
        assert request.transport is not None
        request.transport.close()
        return web.Response()


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    made = Server()
    app = web.Application()
    app.router.add_post("/{path}", made.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield made
    await runner.cleanup()


async def load(url: str) -> LoadSummary:
    async with HttpSender(url, b'{"inputs": []}') as sender:
        return await OpenLoopLoad(FAST, sender, clock=SystemClock()).run()


async def test_answered_requests_are_ok(server: Server) -> None:
    summary = await load(f"{server.url}/good")
    assert (summary.sent, summary.ok, summary.answered_by) == (20, 20, {"m1": 20})


async def test_half_of_the_requests_have_a_port_of_their_own(server: Server) -> None:
    await load(f"{server.url}/good")
    alone = [port for port in server.ports if server.ports.count(port) == 1]
    assert len(server.ports) == 20
    assert len(alone) >= 10
    assert len(set(server.ports)) < 20


async def test_error_answers_fail_with_what_the_server_said(server: Server) -> None:
    summary = await load(f"{server.url}/unknown")
    assert (summary.failed, summary.failures[0].text) == (20, "HTTP 404 unknown model")


async def test_answers_that_are_not_json_fail(server: Server) -> None:
    summary = await load(f"{server.url}/text")
    assert (summary.failed, summary.failures[0].text) == (20, "answer is not a JSON object")


async def test_cut_connections_fail(server: Server) -> None:
    summary = await load(f"{server.url}/cut")
    assert (summary.ok, summary.failed, summary.not_sent) == (0, 20, 0)


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def test_refused_connections_fail() -> None:
    summary = await load(f"http://127.0.0.1:{closed_port()}/")
    assert (summary.ok, summary.failed, summary.not_sent) == (0, 20, 0)
    assert "Connect call failed" in summary.failures[0].text


def test_program_prints_its_summary_and_fails_with_the_server(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    body = tmp_path / "body.json"
    body.write_text("{}")
    url = f"http://127.0.0.1:{closed_port()}/"
    code = main([url, "--rate", "100", "--seconds", "1", "--count", "3", "--body", str(body)])
    out, err = capsys.readouterr()
    assert (code, json.loads(out)["failed"]) == (1, 3)
    assert err.startswith("started ")
