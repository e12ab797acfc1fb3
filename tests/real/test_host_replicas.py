"""Replicas that go wrong, with a fake engine: small real processes on loopback."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import structlog

from maserve.backends import LoadState
from maserve.backends.triton import ProbeSettings, ReadinessProbe, TritonSettings
from maserve.backends.triton.local import Command, EngineLaunch
from maserve.base.clock import SystemClock
from maserve.base.errors import Unavailable, Unsupported
from maserve.base.keys import Key, ModelName
from maserve.host import Program, Supervisor
from maserve.host.program import record_path
from maserve.testing.fake_engine import FakeEngine
from maserve.testing.triton_stage import (
    CLUSTER,
    KEY,
    TARGET,
    Stage,
    a_server,
    a_stage,
    fast_settings,
    kill_leftovers,
    until,
)

# Real processes: alone most tests take under two seconds, on two busy cores more.
pytestmark = [pytest.mark.real, pytest.mark.timeout(30)]

FAST = ProbeSettings(period_s=0.05, timeout_s=0.5, failure_threshold=2)
MODEL = ModelName("m1")


class CrashingEngine(FakeEngine):
    def command(self, launch: EngineLaunch) -> Command:
        return Command(argv=("/bin/sh", "-c", "echo no licence; exit 3"), env={})


class DeafEngine(FakeEngine):
    def command(self, launch: EngineLaunch) -> Command:
        return Command(argv=("/bin/sleep", "60"), env={})


class BeatenEngine(FakeEngine):
    """Finds its port taken at the first start: somebody was faster."""

    def __init__(self) -> None:
        super().__init__()
        self.ports: list[int] = []

    def command(self, launch: EngineLaunch) -> Command:
        self.ports.append(launch.http_port)
        if len(self.ports) > 1:
            return super().command(launch)
        return Command(argv=("/bin/sh", "-c", "echo Socket already in use; exit 1"), env={})


class ListeningEngine(FakeEngine):
    """Keeps what is bound to log lines where an engine's command is made."""

    def __init__(self) -> None:
        super().__init__()
        self.bound: list[dict[str, object]] = []

    def command(self, launch: EngineLaunch) -> Command:
        self.bound.append(structlog.contextvars.get_contextvars())
        return super().command(launch)


@pytest.fixture(autouse=True)
def _no_leftovers(tmp_path: Path) -> Iterator[None]:
    yield
    kill_leftovers(tmp_path)


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    async with a_stage(tmp_path, probing_fast(), FakeEngine()) as running:
        yield running
        await running.backend.stop_all()


def probing_fast(readiness_probe: ReadinessProbe = ReadinessProbe.MODEL_AWARE) -> TritonSettings:
    return replace(
        fast_settings(),
        liveness=FAST,
        readiness=FAST,
        readiness_probe=readiness_probe,
    )


async def a_message(stage: Stage, state: str) -> str:
    """Wait for a state and return its message."""

    async def there() -> bool:
        return await stage.state(a_server(1)) == state

    await until(there)
    return (await stage.backend.get_server_status(a_server(1), TARGET)).message


async def test_engine_that_crashes_at_once_is_failed_with_its_last_words(tmp_path: Path) -> None:
    async with a_stage(tmp_path, probing_fast(), CrashingEngine()) as stage:
        await stage.backend.create_server(a_server(1), TARGET)
        message = await a_message(stage, "FAILED")
        await stage.until_deleted()

    assert "triton-is1-c1-0: exit code 3: no licence" in message


async def test_engine_that_loses_the_race_for_its_port_takes_another(tmp_path: Path) -> None:
    engine = BeatenEngine()
    async with a_stage(tmp_path, probing_fast(), engine) as stage:
        await stage.backend.create_server(a_server(1), TARGET)
        await stage.until_serving(a_server(1))
        assert stage.endpoints.ports() == engine.ports[1:]
        await stage.until_deleted()

    assert len(set(engine.ports)) == 2


async def test_engine_that_never_answers_is_failed_after_its_startup_budget(
    tmp_path: Path,
) -> None:
    settings = replace(probing_fast(), startup=FAST)
    async with a_stage(tmp_path, settings, DeafEngine()) as stage:
        await stage.backend.create_server(a_server(1), TARGET)
        message = await a_message(stage, "FAILED")
        await stage.until_deleted()

    assert "triton-is1-c1-0: not live 0.1 s after its start: GET http://" in message


async def test_engine_that_is_silent_at_its_start_is_said_to_be(tmp_path: Path) -> None:
    settings = replace(probing_fast(), startup=replace(FAST, failure_threshold=10_000))
    async with a_stage(tmp_path, settings, DeafEngine()) as stage:
        await stage.backend.create_server(a_server(1), TARGET)

        async def said() -> bool:
            status = await stage.backend.get_server_status(a_server(1), TARGET)
            return "triton-is1-c1-0: not live yet: GET http://" in status.message

        await until(said)
        assert await stage.state(a_server(1)) == "CREATING"
        await stage.until_deleted()


async def test_missing_engine_is_said_and_nothing_is_started(tmp_path: Path) -> None:
    engine = FakeEngine(problem=Unsupported("Triton is not installed"))
    async with a_stage(tmp_path, probing_fast(), engine) as stage:
        status = await stage.backend.create_server(a_server(1), TARGET)
        assert stage.backend.views(KEY, CLUSTER) == ()

    assert (status.state, status.message) == ("FAILED", "Triton is not installed")


async def test_frozen_engine_is_restarted_by_its_liveness_probe(stage: Stage) -> None:
    await stage.backend.create_server(a_server(1), TARGET)
    await stage.until_serving(a_server(1))
    (before,) = (row.pid for row in stage.backend.views(KEY, CLUSTER))
    os.kill(before, signal.SIGSTOP)

    async def restarted() -> bool:
        return stage.backend.views(KEY, CLUSTER)[0].restarts == 1

    await until(restarted)
    await stage.until_serving(a_server(1))
    assert stage.backend.views(KEY, CLUSTER)[0].pid != before


async def test_frozen_model_sync_is_started_anew_and_the_engine_is_untouched(
    tmp_path: Path,
) -> None:
    settings = fast_settings()
    quick = replace(settings, embedded=replace(settings.embedded, model_sync_hang_s=2))
    async with a_stage(tmp_path, quick, FakeEngine()) as stage:
        await stage.backend.create_server(a_server(1), TARGET)
        await stage.until_serving(a_server(1))
        before = stage.pids()
        sync = program_of(stage, "/model-sync")
        os.kill(before[sync], signal.SIGSTOP)
        stage.want_models("m1")
        await stage.until_loaded("m1")
        after = stage.pids()
        await stage.until_deleted()

    assert [name for name in before if before[name] != after[name]] == [sync]


@pytest.mark.parametrize("probe", [ReadinessProbe.SERVER, ReadinessProbe.NONE])
async def test_other_readiness_probes_do_not_ask_model_sync(
    tmp_path: Path, probe: ReadinessProbe
) -> None:
    async with a_stage(tmp_path, probing_fast(probe), FakeEngine()) as stage:
        stage.folder.model_config(CLUSTER, KEY).parent.mkdir(parents=True)
        await stage.backend.create_server(a_server(1), TARGET)
        await stage.until_serving(a_server(1))
        await stage.until_deleted()


async def test_required_model_that_is_not_loaded_takes_the_replica_out(stage: Stage) -> None:
    stage.want_models("m1")
    await stage.backend.create_server(a_server(1), TARGET)
    await stage.until_serving(a_server(1))
    await stage.until_loaded("m1")
    (sync,) = (name for name in stage.pids() if name.endswith("/model-sync"))
    os.kill(stage.pids()[sync], signal.SIGSTOP)
    readiness = stage.folder.replicas(CLUSTER, KEY) / "triton-is1-c1-0" / "readiness.json"
    readiness.write_text(json.dumps({"required": ["m1", "m2"]}))
    stage.backend.config_changed(KEY, CLUSTER)

    async def out() -> bool:
        return stage.endpoints.ports() == []

    await until(out)
    assert stage.backend.views(KEY, CLUSTER)[0].reason == "serving models not loaded: m2"
    os.kill(stage.pids()[sync], signal.SIGCONT)


async def test_replica_that_does_not_run_loads_nothing(tmp_path: Path) -> None:
    async with a_stage(tmp_path, probing_fast(), DeafEngine()) as stage:
        await stage.backend.create_server(a_server(1), TARGET)

        async def listed() -> bool:
            return bool((await stage.backend.get_model_status(KEY, TARGET, MODEL)).rows)

        await until(listed)
        (row,) = (await stage.backend.get_model_status(KEY, TARGET, MODEL)).rows
        await stage.until_deleted()

    assert (row.running, row.state) == (False, LoadState.LOADING)
    assert row.reason.startswith("replica is ")


async def test_frozen_replica_is_unavailable_soon_and_not_unloaded(tmp_path: Path) -> None:
    settings = fast_settings()
    quick = replace(settings, embedded=replace(settings.embedded, status_timeout_s=0.1))
    async with a_stage(tmp_path, quick, FakeEngine()) as stage:
        await stage.backend.create_server(a_server(1), TARGET)
        await stage.until_serving(a_server(1))
        (pid,) = (row.pid for row in stage.backend.views(KEY, CLUSTER))
        os.kill(pid, signal.SIGSTOP)
        await until(lambda: is_stopped(pid))
        stage.backend.config_changed(KEY, CLUSTER)
        with pytest.raises(Unavailable, match="triton-is1-c1-0 does not say what it has loaded"):
            await stage.backend.get_model_status(KEY, TARGET, MODEL)
        os.kill(pid, signal.SIGCONT)
        await stage.until_deleted()


async def test_adopted_replica_is_never_said_to_have_lost_its_model(tmp_path: Path) -> None:
    """What the first reading after a restart will say is not known before it."""
    async with a_stage(tmp_path, fast_settings(), FakeEngine()) as stage:
        await stage.backend.create_server(a_server(2), TARGET)
        stage.want_models("m1")
        await stage.until_serving(a_server(2))
        await stage.until_loaded("m1")

    async with a_stage(tmp_path, fast_settings(), FakeEngine()) as stage:
        report = await stage.backend.get_model_status(KEY, TARGET, MODEL)
        await stage.until_deleted()

    assert [row.state for row in report.rows] == [LoadState.READY, LoadState.READY]


async def is_stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].startswith("T")


async def test_adopted_replica_that_hangs_for_a_moment_is_not_restarted(tmp_path: Path) -> None:
    async with a_stage(tmp_path, fast_settings(), FakeEngine()) as stage:
        await stage.backend.create_server(a_server(1), TARGET)
        await stage.until_serving(a_server(1))
        (pid,) = (row.pid for row in stage.backend.views(KEY, CLUSTER))
    os.kill(pid, signal.SIGSTOP)
    await until(lambda: is_stopped(pid))

    quick = replace(fast_settings().embedded, status_timeout_s=1.0)
    settings = replace(fast_settings(), startup=FAST, embedded=quick)
    async with a_stage(tmp_path, settings, FakeEngine()) as stage:
        with pytest.raises(Unavailable, match="does not say what it has loaded"):
            await stage.backend.get_model_status(KEY, TARGET, MODEL)
        os.kill(pid, signal.SIGCONT)
        await until(lambda: is_read(stage))
        (row,) = stage.backend.views(KEY, CLUSTER)
        await stage.until_deleted()

    assert (row.pid, row.restarts) == (pid, 0)


async def is_read(stage: Stage) -> bool:
    try:
        report = await stage.backend.get_model_status(KEY, TARGET, MODEL)
    except Unavailable:
        return False
    return all(row.running for row in report.rows)


async def test_adopted_replica_is_watched_while_no_other_could_be_started(tmp_path: Path) -> None:
    async with a_stage(tmp_path, fast_settings(), FakeEngine()) as stage:
        await stage.backend.create_server(a_server(1), TARGET)
        await stage.until_serving(a_server(1))
        (pid,) = (row.pid for row in stage.backend.views(KEY, CLUSTER))

    engine = FakeEngine(problem=Unavailable("no space for the engine"))
    async with a_stage(tmp_path, fast_settings(), engine) as stage:
        await stage.backend.get_model_status(KEY, TARGET, MODEL)
        (row,) = stage.backend.views(KEY, CLUSTER)
        assert (row.state, row.pid, row.restarts) == ("RUNNING", pid, 0)
        os.kill(pid, signal.SIGKILL)
        await until(lambda: says(stage, "no space for the engine"))
        assert stage.endpoints.ports() == []
        engine.problem = None
        await stage.until_serving(a_server(1))
        await stage.until_deleted()


async def says(stage: Stage, reason: str) -> bool:
    return stage.backend.views(KEY, CLUSTER)[0].reason == reason


async def test_what_an_engine_left_holds_up_only_its_next_start(tmp_path: Path) -> None:
    async with a_stage(tmp_path, fast_settings(), FakeEngine()) as stage:
        await stage.backend.create_server(a_server(1), TARGET)
        await stage.until_serving(a_server(1))
        (pid,) = (row.pid for row in stage.backend.views(KEY, CLUSTER))
        record = record_path(stage.folder.processes, program_of(stage, "/engine"))
        record.unlink()
        record.mkdir()
        os.kill(pid, signal.SIGKILL)
        await until(lambda: says(stage, f"cannot remove {record}: Is a directory"))
        record.rmdir()
        await stage.until_serving(a_server(1))
        await stage.until_deleted()


def program_of(stage: Stage, kind: str) -> str:
    (name,) = (name for name in stage.pids() if name.endswith(kind))
    return name


async def test_reading_is_never_older_than_the_last_config_change(stage: Stage) -> None:
    await stage.backend.create_server(a_server(1), TARGET)
    await stage.until_serving(a_server(1))
    models = stage.folder.replicas(CLUSTER, KEY) / "triton-is1-c1-0" / "models"
    before = await stage.backend.get_model_status(KEY, TARGET, MODEL)
    (models / "m1").mkdir()
    stage.backend.config_changed(KEY, CLUSTER)
    after = await stage.backend.get_model_status(KEY, TARGET, MODEL)

    assert before.rows[0].reason == "model not in repository"
    assert after.rows[0].reason == "model not yet loaded"


async def test_data_plane_that_refuses_is_tried_again(stage: Stage) -> None:
    stage.endpoints.failures = [Unavailable("envoy is away")] * 2
    await stage.backend.create_server(a_server(1), TARGET)
    await stage.until_serving(a_server(1))

    assert len(stage.endpoints.ports()) == 1


async def test_replica_runs_on_while_the_data_plane_does_not_let_go_of_it(tmp_path: Path) -> None:
    settings = fast_settings()
    quick = replace(settings, embedded=replace(settings.embedded, endpoints_timeout_s=0.05))
    async with a_stage(tmp_path, quick, FakeEngine()) as stage:
        await stage.backend.create_server(a_server(2), TARGET)
        await stage.until_serving(a_server(2))
        before = stage.pids()
        stage.endpoints.failures = [Unavailable("envoy is away")] * 5
        await stage.backend.create_server(a_server(1), TARGET)
        await until(lambda: is_refused(stage, 4))
        status = await stage.backend.get_server_status(a_server(1), TARGET)
        assert stage.pids() == before

        await until(lambda: runs(stage, 2))
        assert len(stage.endpoints.ports()) == 1
        await stage.until_deleted()

    said = "1/1 replicas ready, data plane has not taken them yet: envoy is away"
    assert (status.state, status.message) == ("CREATING", said)


async def is_refused(stage: Stage, times: int) -> bool:
    return len(stage.endpoints.failures) <= 5 - times


async def runs(stage: Stage, programs: int) -> bool:
    return len(stage.pids()) == programs


async def test_program_whose_replica_is_not_on_disk_is_ended(tmp_path: Path) -> None:
    stray = Program(
        name="triton/c1/default/gone/triton-gone-c1-0/engine",
        argv=("/bin/sleep", "60"),
        cwd=tmp_path,
        log=tmp_path / "stray.log",
    )
    async with Supervisor(tmp_path / "processes", clock=SystemClock()) as supervisor:
        await supervisor.start(stray)
    async with a_stage(tmp_path, fast_settings(), FakeEngine()) as stage:
        assert await stage.backend.delete_server(KEY, TARGET)
        assert stage.pids() == {}


async def test_folders_of_what_was_broken_off_are_removed(tmp_path: Path) -> None:
    async with a_stage(tmp_path, fast_settings(), FakeEngine()) as stage:
        stage.folder.replicas(CLUSTER, KEY).mkdir(parents=True)
        begun = stage.folder.inference_server(CLUSTER, Key("default", "is2"))
        begun.mkdir()
        (begun / ".desired.json.7.tmp").write_text("{")
        assert await stage.backend.delete_server(KEY, TARGET)
        assert stage.files() == []


async def test_changed_model_sync_command_restarts_only_model_sync(tmp_path: Path) -> None:
    async with a_stage(tmp_path, fast_settings(), FakeEngine()) as stage:
        await stage.backend.create_server(a_server(1), TARGET)
        await stage.until_serving(a_server(1))
        before = stage.pids()
    async with a_stage(tmp_path, fast_settings(), FakeEngine(), sync_env={"NEW": "1"}) as stage:

        async def replaced() -> bool:
            return len(stage.pids()) == 2 and stage.pids() != before

        await until(replaced)
        after = stage.pids()
        await stage.until_deleted()

    assert [name.rpartition("/")[2] for name in before if before[name] == after[name]] == ["engine"]


CONTROL_PLANE = """
import asyncio, pathlib, sys
from maserve.testing.fake_engine import FakeEngine
from maserve.testing.triton_stage import TARGET, a_server, a_stage, fast_settings

async def main():
    print("begun", flush=True)
    async with a_stage(pathlib.Path(sys.argv[1]), fast_settings(), FakeEngine()) as stage:
        await stage.backend.create_server(a_server(2), TARGET)
        await asyncio.sleep(60)

asyncio.run(main())
"""


@pytest.mark.parametrize("moment_ms", [0, 10, 20, 30, 45, 60, 80, 110, 150, 250])
async def test_control_plane_killed_at_any_moment_leaks_no_program(
    tmp_path: Path, moment_ms: int
) -> None:
    first = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", CONTROL_PLANE, str(tmp_path)),
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert first.stdout is not None
    await first.stdout.readline()
    await asyncio.sleep(moment_ms / 1000)
    first.kill()
    await first.communicate()
    async with a_stage(tmp_path, fast_settings(), FakeEngine()) as stage:
        await stage.backend.create_server(a_server(2), TARGET)
        await stage.until_serving(a_server(2))
        assert programs_in(tmp_path) == sorted(stage.pids().values())
        await stage.until_deleted()

    assert programs_in(tmp_path) == []


def programs_in(folder: Path) -> list[int]:
    """Return every process that works below the folder, whoever started it."""
    return sorted(
        int(link.parent.name) for link in Path("/proc").glob("[0-9]*/cwd") if _is_in(link, folder)
    )


def _is_in(link: Path, folder: Path) -> bool:
    try:
        return link.readlink().is_relative_to(folder)
    except OSError:
        return False


@pytest.mark.parametrize("moment_ms", [0, 20, 50, 100, 150, 200, 300])
async def test_server_deleted_at_any_moment_of_its_start_leaves_nothing(
    tmp_path: Path, moment_ms: int
) -> None:
    async with a_stage(tmp_path, fast_settings(), FakeEngine()) as stage:
        await stage.backend.create_server(a_server(2), TARGET)
        await asyncio.sleep(moment_ms / 1000)
        await stage.until_deleted()
        assert stage.files() == []

    assert programs_in(tmp_path) == []


async def test_replicas_do_not_log_under_the_pass_that_asked_for_them(tmp_path: Path) -> None:
    engine = ListeningEngine()
    async with a_stage(tmp_path, probing_fast(), engine) as stage:
        with structlog.contextvars.bound_contextvars(reconcile_id="r1"):
            await stage.backend.create_server(a_server(1), TARGET)
        await stage.until_serving(a_server(1))
        await stage.until_deleted()

    assert engine.bound == [{}]
