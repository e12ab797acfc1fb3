"""The `deployment.*` settings of the stock plugin (serving guide, Rollout Configuration)."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutSettings:
    """Budgets and pauses, in seconds, each for one cluster's step."""

    skip_canary: bool = False
    model_load_timeout_s: float = 900.0
    soak_period_s: float = 0.0
    rollback_model_load_timeout_s: float = 900.0
