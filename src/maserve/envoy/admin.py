"""Envoy's admin endpoint: which version of each resource runs, what was refused, draining."""

from typing import Protocol

from maserve.base.errors import Unavailable
from maserve.host import Answer

_TIMEOUT_S = 2.0
_VERSION = ".version_text"
_REJECTED = ".update_rejected"


class Http(Protocol):
    """What is needed of an HTTP client that is bound to the admin socket."""

    async def request(self, method: str, url: str, *, timeout_s: float) -> Answer:
        """Send one request; raises `Unavailable` when no answer came."""
        ...


class Admin:
    """Asks one running Envoy. Every method raises `Unavailable` when it does not answer."""

    def __init__(self, http: Http) -> None:
        self._http = http

    async def is_ready(self) -> bool:
        """Tell whether Envoy has read its first configuration and serves."""
        answer = await self._http.request("GET", "http://envoy/ready", timeout_s=_TIMEOUT_S)
        return answer.status == 200

    async def versions(self) -> dict[str, str]:
        """Return the version that runs, by the scope of its statistics."""
        text = await self._get("/stats?type=TextReadouts&filter=version_text$")
        return {
            name.removesuffix(_VERSION): value.strip('"')
            for name, value in _rows(text)
            if name.endswith(_VERSION)
        }

    async def rejections(self) -> dict[str, int]:
        """Return how many updates were refused since Envoy started, by scope; zeros left out."""
        text = await self._get("/stats?type=Counters&usedonly&filter=update_rejected$")
        counts = {name.removesuffix(_REJECTED): int(value) for name, value in _rows(text)}
        return {name: count for name, count in counts.items() if count}

    async def listeners(self) -> tuple[str, ...]:
        """Return the names of the listeners that are open."""
        text = await self._get("/listeners")
        return tuple(line.partition("::")[0] for line in text.splitlines())

    async def active_requests(self) -> int:
        """Return how many requests are in flight on all listeners."""
        text = await self._get("/stats?type=Gauges&filter=^http\\..*downstream_rq_active$")
        return sum(int(value) for name, value in _rows(text) if not name.startswith("http.admin."))

    async def drain(self) -> None:
        """Ask clients to leave, then close the listeners."""
        await self._send("POST", "/drain_listeners?graceful")

    async def _get(self, path: str) -> str:
        return await self._send("GET", path)

    async def _send(self, method: str, path: str) -> str:
        answer = await self._http.request(method, f"http://envoy{path}", timeout_s=_TIMEOUT_S)
        if answer.status != 200:
            raise Unavailable(f"Envoy's admin endpoint answered {answer.status} to {path}")
        return answer.text()


def _rows(text: str) -> list[tuple[str, str]]:
    parts = (line.rpartition(": ") for line in text.splitlines())
    return [(name, value) for name, separator, value in parts if separator]
