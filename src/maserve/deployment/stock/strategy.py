"""What a Deployment's strategy asks for (behaviour 5.9; serving guide, Rollout Configuration)."""

from dataclasses import dataclass

from maserve.deployment.stock.settings import RolloutSettings
from maserve.wire import v2


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Whether one replica goes first, and how long a cluster serves before the next one starts."""

    canary: bool
    soak_s: float


def pace_of(deployment: v2.Deployment, settings: RolloutSettings) -> Pace:
    """Return the pace: rolling unless zonal or blast; unknown strategies count as rolling.

    Blast skips canary and soak; a zonal period above zero overrides the configured soak.
    """
    strategy = deployment.spec.strategy
    match strategy.WhichOneof("rollout_strategy"):
        case "blast":
            return Pace(canary=False, soak_s=0.0)
        case "zonal" if strategy.zonal.rollout_period_in_seconds > 0:
            soak_s = strategy.zonal.rollout_period_in_seconds
        case _:
            soak_s = settings.soak_period_s
    return Pace(canary=not settings.skip_canary, soak_s=max(0.0, soak_s))


def ignored_fields(deployment: v2.Deployment) -> tuple[str, ...]:
    """Return the set strategy fields that have no effect, as paths, so that a user can be told."""
    spec = deployment.spec
    ignored = {
        "spec.strategy.rolling.increment_percentage": bool(
            spec.strategy.rolling.increment_percentage
        ),
        "spec.strategy.red_black": spec.strategy.HasField("red_black"),
        "spec.strategy.disaggregated": spec.strategy.HasField("disaggregated"),
        "spec.shadow_spec": spec.HasField("shadow_spec"),
        "spec.selector": spec.HasField("selector"),
        "spec.inference_server.namespace": spec.inference_server.namespace
        not in ("", deployment.metadata.namespace),
    }
    return tuple(path for path, is_set in ignored.items() if is_set)
