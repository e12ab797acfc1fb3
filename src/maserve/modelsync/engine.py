"""The door to the serving framework beside us: its model repository API (behaviour 6.6)."""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import quote

from maserve.base.errors import Unavailable
from maserve.base.keys import ModelName
from maserve.host.http import HttpClient
from maserve.modelsync.types import EngineModel, EngineState

_CALL_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadAnswer:
    """What a load call answered. It is not the model's state: only the index is believed."""

    accepted: bool
    text: str = ""


class Engine(Protocol):
    """One replica's serving framework. Every call raises `Unavailable` when no answer came."""

    async def list_models(self) -> Mapping[ModelName, EngineModel]:
        """Return every model of its index, loaded or not."""
        ...

    async def load(self, model: ModelName) -> LoadAnswer:
        """Load or reload from the repository folder; takes as long as the load."""
        ...

    async def count_processes(self, model: ModelName) -> int:
        """Return in how many processes of its own a loaded model should run; 0 in none."""
        ...

    async def unload(self, model: ModelName) -> None:
        """Begin to unload; absent is success. Raises `Unavailable` also when refused."""
        ...


LoadCall = Callable[[ModelName], Awaitable[LoadAnswer]]
"""`Engine.load` as a function."""


class TritonEngine:
    """Triton over its HTTP API on `url`, but for loads, which are left to `load`.

    A load over HTTP keeps a thread of Triton's HTTP server for as long as it takes, and all the
    connections of that thread wait: it must not go this way.
    """

    def __init__(self, http: HttpClient, url: str, *, load: LoadCall) -> None:
        self._http = http
        self._base = f"{url.rstrip('/')}/v2/repository"
        self._models = f"{url.rstrip('/')}/v2/models"
        self._load = load

    async def list_models(self) -> Mapping[ModelName, EngineModel]:
        url = f"{self._base}/index"
        answer = await self._http.request("POST", url, timeout_s=_CALL_TIMEOUT_S, body=b"{}")
        if answer.status != 200:
            raise Unavailable(f"POST {url} answered {answer.status}: {answer.text()[:200]}")
        return parse_index(answer.json())

    async def load(self, model: ModelName) -> LoadAnswer:
        return await self._load(model)

    async def count_processes(self, model: ModelName) -> int:
        url = f"{self._models}/{quote(model, safe='')}/config"
        answer = await self._http.request("GET", url, timeout_s=_CALL_TIMEOUT_S)
        if answer.status != 200:
            raise Unavailable(f"GET {url} answered {answer.status}: {_error(answer.text())}")
        return count_instances(answer.json())

    async def unload(self, model: ModelName) -> None:
        url = f"{self._base}/models/{quote(model, safe='')}/unload"
        answer = await self._http.request("POST", url, timeout_s=_CALL_TIMEOUT_S, body=b"{}")
        if answer.status != 200:
            raise Unavailable(f"POST {url} answered {answer.status}: {_error(answer.text())}")


def parse_index(rows: object) -> Mapping[ModelName, EngineModel]:
    """Fold the index's rows, one per version, into one state per model.

    READY beats FAILED beats LOADING beats UNLOADING. UNAVAILABLE without a reason, or with
    `unloaded`, and a row without a state are UNLOADED. Raises `Unavailable` for another shape.
    """
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise Unavailable("the engine's index is no list of models")
    models: dict[ModelName, EngineModel] = {}
    for row in rows:
        name, model = ModelName(str(row.get("name", ""))), _parse_row(row)
        known = models.get(name)
        if known is None or _ORDER.index(model.state) < _ORDER.index(known.state):
            models[name] = model
    return models


def count_instances(config: object) -> int:
    """Return how many processes a model's configuration asks for: only Python's has any."""
    if not isinstance(config, dict) or config.get("backend") != "python":
        return 0
    groups = config.get("instance_group")
    rows = [row for row in groups if isinstance(row, dict)] if isinstance(groups, list) else []
    return sum(int(row.get("count") or 1) * max(1, len(row.get("gpus") or ())) for row in rows)


def _parse_row(row: Mapping[str, object]) -> EngineModel:
    state, reason = str(row.get("state", "")), str(row.get("reason", ""))
    if state == "UNAVAILABLE" and reason not in ("", "unloaded"):
        return EngineModel(state=EngineState.FAILED, reason=reason)
    if state in ("READY", "LOADING", "UNLOADING"):
        return EngineModel(state=EngineState(state))
    return EngineModel(state=EngineState.UNLOADED)


def _error(text: str) -> str:
    """Return the sentence of an error answer, which is JSON as long as it is the engine's own."""
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    sentence = value.get("error") if isinstance(value, dict) else None
    return str(sentence or text).strip().removesuffix(";")


_ORDER = (
    EngineState.READY,
    EngineState.FAILED,
    EngineState.LOADING,
    EngineState.UNLOADING,
    EngineState.UNLOADED,
)
