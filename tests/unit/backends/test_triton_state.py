"""What is kept on disk about servers and replicas."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from maserve.backends.triton import (
    DrainSettings,
    ProbeSettings,
    ReadinessProbe,
    TritonSettings,
)
from maserve.backends.triton.local.state import (
    ReplicaRecord,
    build_wish,
    parse_replica,
    parse_wish,
)
from maserve.backends.triton.settings import READINESS_MODEL_AWARE, EmbeddedSettings
from maserve.base.errors import Invalid
from maserve.base.keys import ClusterId, Key
from maserve.testing.backend_contract import an_inference_server

PATH = Path("desired.json")
SETTINGS = TritonSettings()
RECORD = ReplicaRecord(
    cluster=ClusterId("c1"),
    key=Key("default", "is1"),
    ordinal=2,
    template="t",
    ports=(1, 2, 3),
    draining=True,
    ready=True,
    admitted=True,
    restarts=4,
    left_endpoints=datetime(2026, 1, 2, tzinfo=UTC),
)


def test_wish_is_read_as_it_was_written() -> None:
    wish = build_wish(an_inference_server(replicas=3), SETTINGS, "v1")

    assert parse_wish(PATH, wish.row()) == wish
    assert (wish.replicas, wish.uid, wish.deleted) == (3, "uid-of-is1", False)


@pytest.mark.parametrize("record", [RECORD, replace(RECORD, left_endpoints=None, ports=())])
def test_record_is_read_as_it_was_written(record: ReplicaRecord) -> None:
    assert parse_replica(PATH, record.row()) == record
    assert record.name == "triton-is1-c1-2"


@pytest.mark.parametrize("row", [{}, [], {"uid": "u", "replicas": "many"}, None])
def test_broken_state_names_its_file(row: object) -> None:
    with pytest.raises(Invalid, match=r"^desired\.json is not the state of a server"):
        parse_wish(PATH, row)
    with pytest.raises(Invalid, match=r"^desired\.json is not the state of a replica"):
        parse_replica(PATH, row)


PROBE = ProbeSettings(period_s=1, timeout_s=1, failure_threshold=1)


@pytest.mark.parametrize(
    ("settings", "engine"),
    [
        pytest.param(replace(SETTINGS, auto_complete_config=False), "v1", id="completion"),
        pytest.param(replace(SETTINGS, drain=DrainSettings(exit_timeout_s=3)), "v1", id="exit"),
        pytest.param(replace(SETTINGS, drain=DrainSettings(pre_stop_s=3)), "v1", id="pre-stop"),
        pytest.param(
            replace(SETTINGS, readiness_probe=ReadinessProbe.SERVER), "v1", id="readiness probe"
        ),
        pytest.param(replace(SETTINGS, startup=PROBE), "v1", id="startup"),
        pytest.param(replace(SETTINGS, liveness=PROBE), "v1", id="liveness"),
        pytest.param(replace(SETTINGS, readiness=PROBE), "v1", id="readiness"),
        pytest.param(
            replace(SETTINGS, readiness=replace(READINESS_MODEL_AWARE, failure_threshold=4)),
            "v1",
            id="one number",
        ),
        pytest.param(SETTINGS, "v2", id="engine version"),
    ],
)
def test_what_needs_a_restart_changes_the_template(settings: TritonSettings, engine: str) -> None:
    before = build_wish(an_inference_server(), SETTINGS, "v1")

    assert build_wish(an_inference_server(), settings, engine).template != before.template


def test_server_made_again_is_another_one() -> None:
    again = an_inference_server()
    again.metadata.uid = "another"
    before = build_wish(an_inference_server(), SETTINGS, "v1")

    assert build_wish(again, SETTINGS, "v1").template != before.template


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(SETTINGS, id="none"),
        pytest.param(replace(SETTINGS, readiness=READINESS_MODEL_AWARE), id="built-in, said"),
        pytest.param(replace(SETTINGS, drain=DrainSettings(pre_stop_s=10)), id="default, said"),
        pytest.param(
            replace(SETTINGS, embedded=EmbeddedSettings(slow_period_s=1)), id="numbers of our own"
        ),
    ],
)
def test_what_takes_effect_as_before_needs_no_restart(settings: TritonSettings) -> None:
    before = build_wish(an_inference_server(), SETTINGS, "v1")

    assert build_wish(an_inference_server(), settings, "v1").template == before.template


def test_timing_of_a_probe_that_is_off_needs_no_restart() -> None:
    off = replace(SETTINGS, readiness_probe=ReadinessProbe.NONE)
    before = build_wish(an_inference_server(), off, "v1")
    after = build_wish(an_inference_server(), replace(off, readiness=PROBE), "v1")

    assert after.template == before.template


@pytest.mark.parametrize("field", ["cpu", "gpu"])
def test_resources_that_are_not_enforced_need_no_restart(field: str) -> None:
    bigger = an_inference_server(replicas=5)
    setattr(bigger.spec.init_spec.resource_spec, field, 2)
    bigger.spec.init_spec.resource_spec.memory = "8Gi"
    before = build_wish(an_inference_server(), SETTINGS, "v1")

    assert build_wish(bigger, SETTINGS, "v1").template == before.template
