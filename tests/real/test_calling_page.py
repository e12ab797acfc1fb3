"""The page about calling a model does what it says, with the programs that it names."""

import asyncio
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from maserve.base.keys import Key
from maserve.testing.live import LiveControlPlane, live_control_plane
from maserve.testing.live_story import fast_settings
from maserve.testing.loopback import free_port
from maserve.testing.programs import find_program
from maserve.testing.resources import a_deployment, a_model, an_inference_server
from maserve.wire import v2

# A control plane, an engine, nginx.
pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guide" / "calling.md").read_text()
DIGITS = Key("digits", "digits")
WRITTEN = "127.0.0.1:8880"


def block(language: str) -> str:
    (found,) = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return str(found)


@pytest.fixture
async def digits(tmp_path: Path) -> AsyncIterator[LiveControlPlane]:
    """A control plane on which the digits example is live."""
    async with live_control_plane(tmp_path, fast_settings()) as plane:
        model = a_model("digits-v1", namespace=DIGITS.namespace)
        model.spec.deployable_artifact_uri[:] = [f"file://{ROOT}/examples/models/digits-v1"]
        await plane.client.create(model)
        await plane.client.create(an_inference_server("digits-server", namespace=DIGITS.namespace))
        await plane.client.create(
            a_deployment(
                DIGITS.name,
                namespace=DIGITS.namespace,
                desired="digits-v1",
                inference_server="digits-server",
            )
        )
        async with asyncio.timeout(60):
            await plane.client.wait_until(
                v2.Deployment,
                DIGITS,
                lambda now: (
                    now is not None and now.status.stage == v2.DEPLOYMENT_STAGE_ROLLOUT_COMPLETE
                ),
            )
        yield plane


async def run(*words: str, text: str = "") -> str:
    """Run a program in the checkout; return what it said. It must end well."""
    program = await asyncio.create_subprocess_exec(
        *words,
        cwd=ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    async with asyncio.timeout(30):
        said, _ = await program.communicate(text.encode())
    assert program.returncode == 0, said.decode()
    return said.decode()


async def test_curl_and_tritonclient_do_as_the_page_says(digits: LiveControlPlane) -> None:
    find_program("curl")
    lines = block("bash").replace(WRITTEN, digits.at.gateway).splitlines()
    said = [await run("bash", "-c", line) for line in lines]
    assert '"data":[7]' in said[0]
    assert '"name":"digits-v1"' in said[1]
    assert "200 OK" in said[2]
    printed = await run(sys.executable, "-c", block("python").replace(WRITTEN, digits.at.gateway))
    assert printed.strip() == "[[7]]"


@asynccontextmanager
async def nginx(folder: Path, location: str) -> AsyncIterator[str]:
    """Run nginx with the page's configuration; yields its address."""
    program, port = find_program("nginx"), free_port()
    temporary = "".join(
        f"{name}_temp_path {folder};\n"
        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(
        f"daemon off; pid {folder}/pid; error_log {folder}/error.log;\nevents {{}}\n"
        f"http {{ access_log off; {temporary} server {{ listen 127.0.0.1:{port};\n{location}}} }}\n"
    )
    running = await asyncio.create_subprocess_exec(
        program, "-p", str(folder), "-c", str(folder / "nginx.conf")
    )
    try:
        yield f"127.0.0.1:{port}"
    finally:
        running.terminate()
        await running.wait()


async def test_nginx_leads_to_the_gateway_as_the_page_says(
    digits: LiveControlPlane, tmp_path: Path
) -> None:
    folder = tmp_path / "nginx"
    folder.mkdir()
    location = block("nginx").replace(WRITTEN, digits.at.gateway)
    async with nginx(folder, location) as address:
        url = f"http://{address}/digits-server/digits/infer"
        retry = ("--retry", "20", "--retry-connrefused", "--retry-delay", "1")
        said = await run("curl", "-s", *retry, url, "-d", "@examples/request.json")
        assert '"data":[7]' in said
        healthy = await run("curl", "-s", f"http://{address}/-/healthy")
        assert healthy.strip() == '{"gateway": "serving"}'
