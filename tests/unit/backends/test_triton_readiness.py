import pytest

from maserve.backends.triton import IndexRow, ProbeSettings
from maserve.backends.triton.local.readiness import Failures, judge_models

PROBE = ProbeSettings(period_s=10, timeout_s=1, failure_threshold=3)
READY = IndexRow(name="m1", version="1", state="READY")
LOADING = IndexRow(name="m2", version="1", state="LOADING")


@pytest.mark.parametrize(
    ("required", "ready", "reason"),
    [
        pytest.param(None, False, "model-sync has not reported yet", id="no list"),
        pytest.param(b"", False, "readiness list of model-sync is broken", id="empty file"),
        pytest.param(b"[]", False, "readiness list of model-sync is broken", id="no object"),
        pytest.param(
            b'{"required": "m1"}', False, "readiness list of model-sync is broken", id="no list"
        ),
        pytest.param(
            b'{"required": [1]}', False, "readiness list of model-sync is broken", id="no names"
        ),
        pytest.param(b'{"required": []}', True, "", id="nothing required"),
        pytest.param(b'{"required": ["m1"]}', True, "", id="required and ready"),
        pytest.param(
            b'{"required": ["m1", "m2", "m3"]}',
            False,
            "serving models not loaded: m2, m3",
            id="not loaded",
        ),
    ],
)
def test_replica_is_ready_once_it_serves_what_is_required(
    required: bytes | None, ready: bool, reason: str
) -> None:
    verdict = judge_models(required, [READY, LOADING])

    assert (verdict.ready, verdict.reason) == (ready, reason)


def test_fast_failures_must_also_last() -> None:
    failures = Failures().another("a", 0).another("b", 1).another("c", 2)

    assert not failures.is_final(PROBE, 2)
    assert failures.another("d", 20).is_final(PROBE, 20)
    assert failures.reason == "c"


def test_few_failures_that_last_are_not_final() -> None:
    assert not Failures().another("a", 0).another("b", 100).is_final(PROBE, 100)
