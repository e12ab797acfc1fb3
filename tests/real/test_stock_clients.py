"""What people have already works: a stock client of the serving protocol, curl's HEAD, HTTP/1.0."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc.aio
import numpy as np
import pytest
import tritonclient.http as httpclient
from tritonclient.utils import InferenceServerException

from maserve.testing.live_story import DEPLOYMENT, SERVER, Story, a_story, fast_settings
from maserve.testing.tiny_models import REQUEST

# A control plane, an engine.
pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]

ORIGIN = "https://app.example.com"


@pytest.fixture
async def story(tmp_path: Path) -> AsyncIterator[Story]:
    settings = {**fast_settings(), "gateway": {"corsOrigins": [ORIGIN]}}
    async with a_story(tmp_path, settings=settings) as made:
        await made.model("blue")
        await made.server(clusters=("c1",), replicas=1)
        await made.roll("blue")
        yield made


def infer_with(base: str, model: str) -> dict[str, Any]:
    """Do what the client's own examples do, with a Deployment's path as the server's address."""
    client = httpclient.InferenceServerClient(base)
    given = httpclient.InferInput("IN", [1, 1], "FP32")
    given.set_data_from_numpy(np.array([[21.0]], dtype=np.float32))
    answer = client.infer(model, [given])
    return {
        "live": client.is_server_live(),
        "ready": client.is_server_ready(),
        "model_ready": client.is_model_ready(model),
        "server": client.get_server_metadata()["name"],
        "model": client.get_model_metadata(model)["name"],
        "config": client.get_model_config(model)["backend"],
        "statistics": client.get_inference_statistics(model)["model_stats"][0]["inference_count"],
        "doubled": answer.as_numpy("OUT").tolist(),
    }


async def test_a_stock_client_of_the_protocol_infers_and_looks(story: Story) -> None:
    base = f"{story.plane.at.gateway}/{SERVER.name}/{DEPLOYMENT.name}"
    for model in (DEPLOYMENT.name, "blue"):
        told = await asyncio.to_thread(infer_with, base, model)
        print(f"as {model}: {told}")
        assert told["doubled"] == [[42.0]]
        assert [told["live"], told["ready"], told["model_ready"]] == [True, True, True]
        assert (told["server"], told["model"], told["config"]) == ("triton", "blue", "python")
        assert told["statistics"] >= 1
    with pytest.raises(InferenceServerException, match="unknown path"):
        await asyncio.to_thread(httpclient.InferenceServerClient(base).get_model_repository_index)
    with pytest.raises(InferenceServerException, match="404"):
        await asyncio.to_thread(infer_with, base, "other")


async def talk(story: Story, request: str) -> tuple[str, dict[str, str], bytes]:
    """Send a request as it stands; return status line, headers and body."""
    host, _, port = story.plane.at.gateway.partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(request.replace("\n", "\r\n").encode())
    async with asyncio.timeout(5):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        lines = head.strip().split("\r\n")
        headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines[1:])}
        body = (
            b""
            if request.startswith("HEAD")
            else await reader.read(int(headers.get("content-length", "-1")))
        )
    writer.close()
    return lines[0], headers, body


async def test_old_and_simple_clients_are_served(story: Story) -> None:
    path = f"/{SERVER.name}/{DEPLOYMENT.name}"
    post = f"POST {path}/infer HTTP/1.0\nContent-Length: {len(REQUEST)}\n\n{REQUEST}"
    status, _, body = await talk(story, post)
    assert ("200" in status, json.loads(body)["model_name"]) == (True, "blue")
    for what in ("", "/ready", "/v2/health/ready"):
        status, _, _ = await talk(story, f"HEAD {path}{what} HTTP/1.1\nHost: g\n\n")
        assert "200" in status, what
    status, _, body = await talk(story, "GET /-/healthy HTTP/1.1\nHost: g\n\n")
    assert ("200" in status, json.loads(body)) == (True, {"gateway": "serving"})


async def test_a_head_beyond_the_engine_s_limit_is_refused_at_the_gateway(story: Story) -> None:
    path = f"/{SERVER.name}/{DEPLOYMENT.name}/infer"
    length = f"Host: g\nContent-Length: {len(REQUEST)}"
    long = "q" * 9000
    for head in (f"{path}?{long} HTTP/1.1\n{length}", f"{path} HTTP/1.1\n{length}\nX-A: {long}"):
        status, _, body = await talk(story, f"POST {head}\n\n{REQUEST}")
        assert ("431" in status, json.loads(body)["error"]) == (True, "request head too large")
    status, _, _ = await talk(story, f"POST {path}?{'q' * 7000} HTTP/1.1\n{length}\n\n{REQUEST}")
    assert "200" in status


async def test_grpc_is_told_where_inference_is(story: Story) -> None:
    async with grpc.aio.insecure_channel(story.plane.at.gateway) as channel:
        call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(
            "/inference.GRPCInferenceService/ServerLive"
        )
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call(b"", timeout=5)
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
    assert "over HTTP only" in str(caught.value.details())


async def test_a_page_of_an_allowed_origin_may_ask_and_no_other(story: Story) -> None:
    path = f"/{SERVER.name}/{DEPLOYMENT.name}/infer"
    ask = "Access-Control-Request-Method: POST\nAccess-Control-Request-Headers: content-type"
    preflight = f"OPTIONS {path} HTTP/1.1\nHost: g\nOrigin: {{}}\n{ask}\n\n"
    status, headers, _ = await talk(story, preflight.format(ORIGIN))
    assert ("200" in status, headers["access-control-allow-origin"]) == (True, ORIGIN)
    _, headers, _ = await talk(story, preflight.format("https://evil.example.com"))
    assert "access-control-allow-origin" not in headers
    post = f"POST {path} HTTP/1.1\nHost: g\nOrigin: {ORIGIN}\nContent-Length: {len(REQUEST)}\n\n"
    status, headers, _ = await talk(story, post + REQUEST)
    assert ("200" in status, headers["access-control-allow-origin"]) == (True, ORIGIN)
