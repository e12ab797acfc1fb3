"""What starting Triton needs on this machine, and what is said when it is missing."""

from pathlib import Path

import pytest

from maserve.backends.triton import DrainSettings, TritonSettings
from maserve.backends.triton.local import EngineLaunch, Interpreter
from maserve.backends.triton.local.wheel import (
    STUB,
    PreparedTriton,
    Wheel,
    build_command,
    check_loadable,
    find_library_folder,
    make_home,
    parse_loader_problem,
)
from maserve.base.errors import Unsupported

PREPARED = PreparedTriton(
    version="1", server=Path("/t/tritonserver"), backends=Path("/t/backends"), env={"PATH": "/p"}
)
LAUNCH = EngineLaunch(
    http_port=1, grpc_port=2, metrics_port=3, repository=Path("/r/models"), shm_prefix="x-"
)


def test_command_line_listens_on_loopback_only_and_loads_on_request_only() -> None:
    command = build_command(PREPARED, LAUNCH, TritonSettings())

    assert command.argv[0] == "/t/tritonserver"
    assert command.env == {"PATH": "/p"}
    assert {
        "--model-store=/r/models",
        "--http-address=127.0.0.1",
        "--grpc-address=127.0.0.1",
        "--metrics-address=127.0.0.1",
        "--http-port=1",
        "--grpc-port=2",
        "--metrics-port=3",
        "--model-control-mode=explicit",
        "--strict-readiness=false",
        "--exit-timeout-secs=30",
        "--backend-config=python,shm-region-prefix-name=x-",
    } <= set(command.argv)


@pytest.mark.parametrize(("completes", "told"), [(True, False), (False, True)])
def test_config_completion_can_be_switched_off(completes: bool, told: bool) -> None:
    settings = TritonSettings(auto_complete_config=completes)
    command = build_command(PREPARED, LAUNCH, settings)

    assert ("--disable-auto-complete-config" in command.argv) is told


def test_exit_timeout_is_the_drain_setting() -> None:
    settings = TritonSettings(drain=DrainSettings(exit_timeout_s=7))

    assert "--exit-timeout-secs=7" in build_command(PREPARED, LAUNCH, settings).argv


@pytest.mark.parametrize(
    ("output", "problem"),
    [
        pytest.param("\tlibc.so.6 => /lib/libc.so.6 (0x1)\n", "", id="all found"),
        pytest.param(
            "\tliba.so => not found\n\tlibb.so.1 => not found\n",
            "missing libraries: liba.so, libb.so.1",
            id="missing",
        ),
        pytest.param(
            "stub: /lib/libc.so.6: version `GLIBC_2.35' not found (required by stub)\n",
            "this system's C library is too old, GLIBC 2.35 is needed",
            id="old C library",
        ),
    ],
)
def test_loader_complaints_are_put_into_words(output: str, problem: str) -> None:
    assert parse_loader_problem(output) == problem


def test_program_that_cannot_be_loaded_is_named(tmp_path: Path) -> None:
    program = tmp_path / "stub"
    program.write_text("not a program")
    with pytest.raises(Unsupported, match="stub cannot start: "):
        check_loadable(program, {})


def an_interpreter(folder: Path, library: str) -> Interpreter:
    return Interpreter(
        version="3.11",
        prefix=Path("/opt/python"),
        library=library,
        library_folders=(Path("/nowhere"), folder),
    )


def test_shared_library_of_the_interpreter_is_found(tmp_path: Path) -> None:
    (tmp_path / "libpython3.11.so.1.0").write_text("")

    assert find_library_folder(an_interpreter(tmp_path, "libpython3.11.so.1.0")) == tmp_path


@pytest.mark.parametrize("library", ["", "libpython3.11.so.1.0"])
def test_interpreter_without_a_shared_library_is_refused(tmp_path: Path, library: str) -> None:
    with pytest.raises(Unsupported, match=r"--enable-shared, and Python 3.11 in /opt/python has"):
        find_library_folder(an_interpreter(tmp_path, library))


def test_copy_that_was_broken_off_is_made_anew(tmp_path: Path) -> None:
    root, numpy = tmp_path / "tritonserver", tmp_path / "numpy"
    for folder in ("backends/python", "python_backend_stubs/3.11", "bin"):
        (root / folder).mkdir(parents=True)
    (root / "python_backend_stubs/3.11" / STUB).write_text("stub")
    (root / "bin/tritonserver").write_text("server")
    wheel = Wheel(
        version="1", root=root, libraries=tmp_path / "libs", numpy=numpy, numpy_version="1"
    )
    home = tmp_path / "engines" / "triton-1"
    (home.parent / ".triton-1" / "backends" / "half").mkdir(parents=True)

    make_home(home, wheel, an_interpreter(tmp_path, ""))

    assert sorted(str(path.relative_to(home.parent)) for path in home.parent.rglob("*")) == [
        "triton-1",
        "triton-1/backends",
        "triton-1/backends/python",
        "triton-1/backends/python/numpy",
        f"triton-1/backends/python/{STUB}",
        "triton-1/bin",
        "triton-1/bin/tritonserver",
    ]
