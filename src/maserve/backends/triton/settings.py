"""Settings of the Triton backend, in every mode (behaviour 4.1; serving guide, configuration)."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self

from maserve.base.errors import Invalid, Problem


class ReadinessProbe(StrEnum):
    """What makes a replica ready: its required models, the framework's own word, or nothing."""

    MODEL_AWARE = "model-aware"
    SERVER = "server"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeSettings:
    """Timing of one probe. `failure_threshold` failures in a row count as a failed probe."""

    period_s: float
    timeout_s: float
    failure_threshold: int

    def overridden(
        self, *, period_s: float = 0, timeout_s: float = 0, failure_threshold: int = 0
    ) -> Self:
        """Return a copy with other numbers; zero or less keeps the one that is there (guide)."""
        return type(self)(
            period_s=period_s if period_s > 0 else self.period_s,
            timeout_s=timeout_s if timeout_s > 0 else self.timeout_s,
            failure_threshold=(
                failure_threshold if failure_threshold > 0 else self.failure_threshold
            ),
        )


STARTUP = ProbeSettings(period_s=5, timeout_s=3, failure_threshold=60)
LIVENESS = ProbeSettings(period_s=10, timeout_s=5, failure_threshold=6)
READINESS_MODEL_AWARE = ProbeSettings(period_s=10, timeout_s=8, failure_threshold=3)
READINESS_SERVER = ProbeSettings(period_s=10, timeout_s=5, failure_threshold=3)

PRE_STOP_S = 10.0
EXIT_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainSettings:
    """How a replica shuts down.

    `pre_stop_s` is waited between leaving the endpoints and SIGTERM, `exit_timeout_s` is how long
    Triton then waits for requests in flight. Values of zero or less fall back to 10 and 30.
    """

    pre_stop_s: float = PRE_STOP_S
    exit_timeout_s: float = EXIT_TIMEOUT_S

    def __post_init__(self) -> None:
        if self.pre_stop_s <= 0:
            object.__setattr__(self, "pre_stop_s", PRE_STOP_S)
        if self.exit_timeout_s <= 0:
            object.__setattr__(self, "exit_timeout_s", EXIT_TIMEOUT_S)


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedSettings:
    """Numbers of the embedded mode alone.

    The index of a replica is read every `fast_period_s` while something moves there and for
    `fast_after_change_s` after a change of the model config, else every `slow_period_s`. A process
    that ends is started again after `restart_initial_s`, doubling up to `restart_limit_s`, from the
    beginning once it ran `restart_reset_s`.
    """

    fast_period_s: float = 0.05
    slow_period_s: float = 2.0
    fast_after_change_s: float = 3.0
    restart_initial_s: float = 0.2
    restart_limit_s: float = 10.0
    restart_reset_s: float = 60.0
    endpoints_timeout_s: float = 30.0
    """How long replicas of a server that ends wait for the data plane to let go of them; those that
    are scaled down or replaced wait as long as it takes."""
    model_sync_hang_s: float = 60.0
    """A model-sync whose main thread did nothing at all for so long is started anew."""
    requirement_hold_s: float = 30.0
    """A required model that is missing on every replica for so long holds no other model out any
    more (ADR 0017): longer than a load usually takes, shorter than anybody waits for an answer."""
    status_timeout_s: float = 5.0
    """How long a reader of load states waits for a replica to answer."""
    kill_margin_s: float = 5.0
    """Added to the exit timeout before SIGKILL, as in the pod's grace period (guide)."""
    shutdown_pre_stop_s: float = 0.5
    """Stands in for `pre_stop_s` when everything is stopped: the local data plane acknowledges."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TritonSettings:
    """All of `inferenceServer.triton`. A `readiness` of None takes the built-in of its kind."""

    readiness_probe: ReadinessProbe = ReadinessProbe.MODEL_AWARE
    startup: ProbeSettings = STARTUP
    liveness: ProbeSettings = LIVENESS
    readiness: ProbeSettings | None = None
    drain: DrainSettings = field(default_factory=DrainSettings)
    auto_complete_config: bool = True
    embedded: EmbeddedSettings = field(default_factory=EmbeddedSettings)

    def readiness_timing(self) -> ProbeSettings:
        """Return the numbers of the readiness probe."""
        if self.readiness is not None:
            return self.readiness
        server = self.readiness_probe is ReadinessProbe.SERVER
        return READINESS_SERVER if server else READINESS_MODEL_AWARE


def parse_readiness_probe(
    text: str, field_name: str = "inferenceServer.triton.readinessProbe"
) -> ReadinessProbe:
    """Return the probe people mean; empty is the default. Raises `Invalid` naming `field_name`."""
    if not text:
        return ReadinessProbe.MODEL_AWARE
    try:
        return ReadinessProbe(text)
    except ValueError as error:
        known = ", ".join(ReadinessProbe)
        raise Invalid(Problem(field_name, f"is {text!r}, not one of {known}")) from error
