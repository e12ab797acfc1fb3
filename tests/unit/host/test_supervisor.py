import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from maserve.base.clock import SystemClock
from maserve.base.errors import Exists, Unavailable
from maserve.host import Process, Program, Supervisor, activity
from maserve.host.proc import find_identity, find_marked, session_of
from maserve.host.program import Record, save_record, spawn

SLEEP = ("/bin/sleep", "60")
STUBBORN = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("up", flush=True)
time.sleep(60)
"""
LOOP = """
import time
while True:
    time.sleep(0.005)
"""
WITH_CHILD = """
import subprocess, time
subprocess.Popen(["/bin/sleep", "60"], start_new_session=True)
print("up", flush=True)
time.sleep(60)
"""


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-I", "-S", "-c", code)


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(4):
        while not holds():  # noqa: ASYNC110 - files and processes raise no event
            await asyncio.sleep(0.005)


def a_program(folder: Path, argv: tuple[str, ...] = SLEEP, name: str = "one") -> Program:
    return Program(name=name, argv=argv, cwd=folder, log=folder / f"{name}.log", env={"A": "1"})


def a_supervisor(folder: Path) -> Supervisor:
    return Supervisor(folder / "processes", clock=SystemClock())


@pytest.fixture
async def supervisor(tmp_path: Path) -> AsyncIterator[Supervisor]:
    async with a_supervisor(tmp_path) as running:
        yield running
        for process in running.list_running():
            await running.terminate(process.name, grace_s=0)


async def test_program_runs_in_a_session_of_its_own(supervisor: Supervisor, tmp_path: Path) -> None:
    process = await supervisor.start(a_program(tmp_path))

    assert session_of(process.pid) == process.pid
    assert supervisor.find("one") is process
    assert supervisor.list_running() == (process,)


async def test_program_gets_only_its_environment_and_no_descriptor_of_ours(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)
    code = "import os; print(sorted(os.environ), sorted(os.listdir('/proc/self/fd')), flush=True)"
    process = await supervisor.start(a_program(tmp_path, python(code)))
    await process.exited.wait()
    os.close(reader)
    os.close(writer)

    assert (tmp_path / "one.log").read_text().splitlines() == [
        "['A', 'LC_CTYPE', 'MASERVE_PROCESS'] ['0', '1', '2', '3']"
    ]


async def test_exit_is_noticed_at_once_with_its_code(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    process = await supervisor.start(a_program(tmp_path, ("/bin/sh", "-c", "exit 3")))
    await process.exited.wait()

    assert str(process.exit) == "exit code 3"
    assert supervisor.find("one") is None


async def test_killed_program_leaves_no_zombie(supervisor: Supervisor, tmp_path: Path) -> None:
    process = await supervisor.start(a_program(tmp_path))
    os.kill(process.pid, signal.SIGKILL)
    await process.exited.wait()

    assert str(process.exit) == "killed by SIGKILL"
    assert not Path(f"/proc/{process.pid}").exists()


async def test_terminate_asks_first(supervisor: Supervisor, tmp_path: Path) -> None:
    await supervisor.start(a_program(tmp_path))
    ended = await supervisor.terminate("one", grace_s=3)

    assert str(ended) == "killed by SIGTERM"
    assert list((tmp_path / "processes").iterdir()) == []


async def test_terminate_kills_what_does_not_listen(supervisor: Supervisor, tmp_path: Path) -> None:
    await supervisor.start(a_program(tmp_path, python(STUBBORN)))
    await until(lambda: "up" in (tmp_path / "one.log").read_text())
    ended = await supervisor.terminate("one", grace_s=0.05)

    assert str(ended) == "killed by SIGKILL"


async def test_terminate_of_nothing_is_success(supervisor: Supervisor) -> None:
    assert await supervisor.terminate("nobody", grace_s=1) is None


async def test_children_in_other_sessions_are_killed_with_their_parent(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    process = await supervisor.start(a_program(tmp_path, python(WITH_CHILD)))
    await until(lambda: "up" in (tmp_path / "one.log").read_text())
    assert len(find_marked(process.record.entry)) == 2
    os.kill(process.pid, signal.SIGKILL)
    await process.exited.wait()
    await supervisor.settle("one")

    assert find_marked(process.record.entry) == ()


async def test_running_name_cannot_be_started_twice(supervisor: Supervisor, tmp_path: Path) -> None:
    await supervisor.start(a_program(tmp_path))

    with pytest.raises(Exists, match="program one already exists"):
        await supervisor.start(a_program(tmp_path))


async def test_name_that_is_being_started_cannot_be_started_twice(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    results = await asyncio.gather(
        supervisor.start(a_program(tmp_path)),
        supervisor.start(a_program(tmp_path)),
        return_exceptions=True,
    )

    assert [type(result) for result in results] == [Process, Exists]


async def test_missing_program_is_named_and_leaves_no_record(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    with pytest.raises(Unavailable, match=r"cannot start one: .*nowhere"):
        await supervisor.start(a_program(tmp_path, ("/nowhere/at/all",)))

    assert list((tmp_path / "processes").iterdir()) == []


async def leave_running(folder: Path, *programs: Program) -> tuple[Process, ...]:
    async with a_supervisor(folder) as first:
        return tuple([await first.start(program) for program in programs])


async def test_program_outlives_its_supervisor_and_is_adopted(tmp_path: Path) -> None:
    (before,) = await leave_running(tmp_path, a_program(tmp_path))
    async with a_supervisor(tmp_path) as second:
        adopted = second.find("one")
        assert adopted is not None
        assert (adopted.pid, adopted.digest) == (before.pid, a_program(tmp_path).digest())
        await second.terminate("one", grace_s=3)

    assert find_identity(before.pid) is None


async def test_exit_of_an_adopted_program_is_noticed(tmp_path: Path) -> None:
    (before,) = await leave_running(tmp_path, a_program(tmp_path))
    async with a_supervisor(tmp_path) as second:
        adopted = second.find("one")
        assert adopted is not None
        os.kill(before.pid, signal.SIGKILL)
        await adopted.exited.wait()
        await second.settle("one")

    assert list((tmp_path / "processes").iterdir()) == []


async def test_process_whose_pid_is_somebody_elses_by_now_has_ended(tmp_path: Path) -> None:
    ours = find_identity(os.getpid())
    assert ours is not None
    record = Record(name="one", marker="m", digest="", log=tmp_path / "one.log")
    process = Process(record, replace(ours, ticks=ours.ticks - 1), None)
    process.watch()

    assert process.exited.is_set()


async def test_program_that_ended_while_away_is_not_adopted_and_its_children_are_killed(
    tmp_path: Path,
) -> None:
    (before,) = await leave_running(tmp_path, a_program(tmp_path, python(WITH_CHILD)))
    await until(lambda: "up" in (tmp_path / "one.log").read_text())
    os.kill(before.pid, signal.SIGKILL)
    os.waitpid(before.pid, 0)  # noqa: ASYNC222 - killed, it cannot take long
    async with a_supervisor(tmp_path) as second:
        assert second.list_running() == ()

    assert find_marked(before.record.entry) == ()


async def test_crash_between_start_and_note_leaks_nothing(tmp_path: Path) -> None:
    program = a_program(tmp_path)
    record = Record(name="one", marker="m" * 32, digest=program.digest(), log=program.log)
    save_record(tmp_path / "processes", record)
    child = spawn(program, record)
    async with a_supervisor(tmp_path) as after_crash:
        adopted = after_crash.find("one")
        assert adopted is not None
        assert adopted.pid == child.pid
        await after_crash.terminate("one", grace_s=3)

    assert child.wait() == -signal.SIGTERM


async def test_intent_without_a_process_is_forgotten(tmp_path: Path) -> None:
    program = a_program(tmp_path)
    record = Record(name="one", marker="n" * 32, digest="", log=program.log)
    save_record(tmp_path / "processes", record)
    async with a_supervisor(tmp_path) as after_crash:
        assert after_crash.find("one") is None

    assert list((tmp_path / "processes").iterdir()) == []


async def test_start_that_is_cancelled_half_way_can_still_be_ended(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await supervisor.start(a_program(tmp_path))
    await supervisor.terminate("one", grace_s=3)

    assert supervisor.list_running() == ()
    assert list((tmp_path / "processes").glob("*.json")) == []


async def test_start_that_is_under_way_is_ended_too(supervisor: Supervisor, tmp_path: Path) -> None:
    async with asyncio.TaskGroup() as group:
        started = group.create_task(supervisor.start(a_program(tmp_path)))
        group.create_task(supervisor.terminate("one", grace_s=3))

    assert started.result().exited.is_set()
    assert supervisor.list_running() == ()


async def test_activity_tells_a_program_that_waits_from_one_that_is_stopped(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    process = await supervisor.start(a_program(tmp_path, python(LOOP)))
    begun = activity(process.pid)
    await until(lambda: activity(process.pid) > begun + 10)
    os.kill(process.pid, signal.SIGSTOP)
    await until(lambda: is_stopped(process.pid))
    stopped = activity(process.pid)

    assert activity(process.pid) == stopped
    await supervisor.terminate("one", grace_s=0)
    assert activity(process.pid) == 0


def is_stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].startswith("T")
