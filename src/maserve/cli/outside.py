"""The real outside: the gRPC client, HTTP to the gateway, the machine's clock."""

from maserve.base.clock import SystemClock
from maserve.cli.api import Outside
from maserve.client import Client
from maserve.host.http import Answer, HttpClient

PREDICT_TIMEOUT_S = 60.0


def system_outside() -> Outside:
    """Return what the program itself uses."""
    return Outside(connect=Client, post=_post, clock=SystemClock())


async def _post(url: str, body: bytes) -> Answer:
    async with HttpClient() as http:
        return await http.request("POST", url, timeout_s=PREDICT_TIMEOUT_S, body=body)
