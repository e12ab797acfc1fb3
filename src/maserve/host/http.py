"""The one HTTP client for programs on this machine and beside a replica (docs/adr/0003)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import aiohttp

from maserve.base.errors import Unavailable


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One HTTP answer, read to its end."""

    status: int
    body: bytes

    def json(self) -> Any:
        """Parse the body. Raises `Unavailable` when it is not JSON."""
        try:
            return json.loads(self.body)
        except ValueError as error:
            raise Unavailable(f"answer is not JSON: {error}") from error

    def text(self) -> str:
        return self.body.decode(errors="replace")


class HttpClient:
    """Keeps connections; use as `async with`. `socket` sends everything through a unix socket."""

    def __init__(self, *, socket: Path | None = None) -> None:
        self._socket = socket
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        connector = (
            aiohttp.UnixConnector(path=str(self._socket))
            if self._socket
            else aiohttp.TCPConnector(limit_per_host=16, keepalive_timeout=30)
        )
        self._session = aiohttp.ClientSession(connector=connector, trust_env=False)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def request(
        self,
        method: str,
        url: str,
        *,
        timeout_s: float,
        body: bytes | None = None,
        content_type: str = "application/json",
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Return the answer, whatever its status. Raises `Unavailable` naming the URL."""
        if self._session is None:
            raise RuntimeError("HttpClient is used outside its `async with`")
        sent = dict(headers or {})
        if body is not None:
            sent["Content-Type"] = content_type
        try:
            async with self._session.request(
                method,
                url,
                data=body,
                headers=sent,
                timeout=aiohttp.ClientTimeout(total=timeout_s),
                allow_redirects=False,
            ) as response:
                return Answer(status=response.status, body=await response.read())
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Unavailable(f"{method} {url}: {str(error) or type(error).__name__}") from error
