"""A test run that is ended from outside ends what its tests have started."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

RUNNING = """
import asyncio

async def test_that_runs():
    try:
        print("started", flush=True)
        await asyncio.Event().wait()
    finally:
        await asyncio.sleep(0)
        print("cleaned up", flush=True)
"""


def test_sigterm_lets_tests_clean_up(tmp_path: Path) -> None:
    test = tmp_path / "test_running.py"
    test.write_text(RUNNING)
    options = ("-s", f"--rootdir={ROOT}", f"-c{ROOT / 'pyproject.toml'}", "-ptests.conftest")
    argv = (sys.executable, "-m", "pytest", *options, f"--basetemp={tmp_path / 'temp'}", str(test))
    with subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        assert any("started" in line for line in run.stdout)
        run.send_signal(signal.SIGTERM)
        said = run.stdout.read()
        assert run.wait(timeout=10) == pytest.ExitCode.INTERRUPTED, said
    assert "cleaned up" in said
