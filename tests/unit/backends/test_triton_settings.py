import pytest

from maserve.backends.triton import (
    DrainSettings,
    ProbeSettings,
    ReadinessProbe,
    TritonSettings,
    parse_readiness_probe,
)
from maserve.base.errors import Invalid


def test_built_in_numbers() -> None:
    settings = TritonSettings()

    assert settings.startup == ProbeSettings(period_s=5, timeout_s=3, failure_threshold=60)
    assert settings.liveness == ProbeSettings(period_s=10, timeout_s=5, failure_threshold=6)
    assert settings.readiness_timing() == ProbeSettings(
        period_s=10, timeout_s=8, failure_threshold=3
    )
    assert settings.drain == DrainSettings(pre_stop_s=10, exit_timeout_s=30)
    assert settings.auto_complete_config


def test_server_probe_has_numbers_of_its_own() -> None:
    settings = TritonSettings(readiness_probe=ReadinessProbe.SERVER)

    assert settings.readiness_timing().timeout_s == 5


def test_readiness_numbers_can_be_given() -> None:
    mine = ProbeSettings(period_s=1, timeout_s=1, failure_threshold=1)

    assert TritonSettings(readiness=mine).readiness_timing() == mine


def test_drain_values_of_zero_or_less_fall_back() -> None:
    drain = DrainSettings(pre_stop_s=0, exit_timeout_s=-1)

    assert (drain.pre_stop_s, drain.exit_timeout_s) == (10, 30)


def test_zero_overrides_keep_the_built_in() -> None:
    probe = ProbeSettings(period_s=5, timeout_s=3, failure_threshold=60)

    assert probe.overridden() == probe
    assert probe.overridden(period_s=1, timeout_s=2, failure_threshold=3) == ProbeSettings(
        period_s=1, timeout_s=2, failure_threshold=3
    )


def test_readiness_probe_is_parsed() -> None:
    assert parse_readiness_probe("") is ReadinessProbe.MODEL_AWARE
    assert parse_readiness_probe("none") is ReadinessProbe.NONE
    with pytest.raises(Invalid, match="readinessProbe is 'exec', not one of model-aware, server"):
        parse_readiness_probe("exec")
