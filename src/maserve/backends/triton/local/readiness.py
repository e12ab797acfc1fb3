"""When a replica is ready, and when a probe has failed. Pure (behaviour 4.1; architecture 5.7)."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace

from maserve.backends.triton.index import IndexRow, model_state
from maserve.backends.triton.settings import ProbeSettings
from maserve.backends.types import LoadState
from maserve.base.keys import ModelName


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """A verdict; `reason` says why a replica is not ready."""

    ready: bool
    reason: str = ""


def judge_models(required: bytes | None, rows: Iterable[IndexRow]) -> Readiness:
    """Judge a replica that answers by the list model-sync has written beside it.

    `required` is that file's content, None when it is missing. A list that is missing or broken is
    never taken for "nothing is required".
    """
    if required is None:
        return Readiness(ready=False, reason="model-sync has not reported yet")
    names = _parse_required(required)
    if names is None:
        return Readiness(ready=False, reason="readiness list of model-sync is broken")
    index = tuple(rows)
    missing = [name for name in names if model_state(index, name)[0] is not LoadState.READY]
    if missing:
        return Readiness(ready=False, reason=f"serving models not loaded: {', '.join(missing)}")
    return Readiness(ready=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failures:
    """Failures of one probe in a row; `since_s` is the monotonic time of the first."""

    count: int = 0
    since_s: float = 0.0
    reason: str = ""

    def another(self, reason: str, now_s: float) -> "Failures":
        """Return the count with one more failure."""
        first = self.since_s if self.count else now_s
        return replace(self, count=self.count + 1, since_s=first, reason=reason)

    def is_final(self, probe: ProbeSettings, now_s: float) -> bool:
        """Tell whether the probe has failed.

        Probes here may come faster than `period_s`; the failures must also have lasted as long as
        `failure_threshold` probes at their period would take.
        """
        lasting_s = probe.period_s * (probe.failure_threshold - 1)
        return self.count >= probe.failure_threshold and now_s - self.since_s >= lasting_s


def _parse_required(data: bytes) -> tuple[ModelName, ...] | None:
    try:
        names = json.loads(data)["required"]
    except (ValueError, KeyError, TypeError):
        return None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return None
    return tuple(ModelName(name) for name in names)
