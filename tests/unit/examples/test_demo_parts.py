"""The parts of the demo: what it shows, counts, finds on the machine and writes."""

import io
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from examples.demo.claims import Claims
from examples.demo.digits import Digit, Reading, build_request, parse_digit, read_digits
from examples.demo.plane import free_addresses
from examples.demo.preflight import find_obstacle, find_system_obstacle
from examples.demo.screen import Screen
from examples.demo.story import EXAMPLES, tell_load, write_manifests
from examples.demo.traces import (
    Process,
    count_kinds,
    kind_of,
    list_files,
    list_processes,
)
from rich.console import Console

from maserve.resource import from_yaml
from maserve.testing.load_results import Failure, LoadSummary
from maserve.wire import v2


def plain_screen() -> tuple[Screen, io.StringIO]:
    text = io.StringIO()
    return Screen(Console(file=text, width=40, highlight=False)), text


def test_lines_are_plain_and_not_wrapped_without_a_terminal() -> None:
    screen, text = plain_screen()
    screen.claim("x" * 100, held=True)
    assert text.getvalue() == f"  ok   {'x' * 100}\n"


def test_a_wait_without_a_terminal_tells_each_new_line_once() -> None:
    screen, text = plain_screen()
    with screen.wait("loading") as progress:
        progress("half\nway")
        progress("half\nway")
        progress("")
    assert text.getvalue() == "    half way\n"


def test_a_wait_on_a_terminal_is_one_live_line() -> None:
    text = io.StringIO()
    screen = Screen(Console(file=text, force_terminal=True, width=80))
    with screen.wait("loading") as progress:
        progress("half")
    assert "loading" in text.getvalue()


def test_markup_in_messages_is_shown_as_it_is() -> None:
    screen, text = plain_screen()
    screen.out("[red]not a colour[/red]")
    assert text.getvalue() == "    [red]not a colour[/red]\n"


def test_claims_that_do_not_hold_are_kept() -> None:
    screen, text = plain_screen()
    claims = Claims(screen)
    claims.check("water is wet", held=True)
    claims.check("pigs fly", held=False)
    assert claims.failed == ["pigs fly"]
    assert not claims.all_held
    assert "FAIL pigs fly" in text.getvalue()


def test_a_story_without_claims_has_shown_nothing() -> None:
    assert not Claims(plain_screen()[0]).all_held


def test_held_out_digits_are_read() -> None:
    digits = read_digits(EXAMPLES / "models" / "heldout.csv")
    assert len(digits) == 450
    assert {len(digit.pixels) for digit in digits} == {64}
    assert {digit.label for digit in digits} == set(range(10))


def test_request_is_one_image() -> None:
    body = build_request(Digit(label=7, pixels=(0, 16)))
    assert body == (
        b'{"inputs": [{"name": "image", "datatype": "FP32", "shape": [1, 2], "data": [0, 16]}]}'
    )


def test_digit_is_found_by_its_name_in_the_answer() -> None:
    outputs = [{"name": "scores", "data": [0.1]}, {"name": "digit", "data": [3]}]
    assert parse_digit({"outputs": outputs}) == 3


def test_reading_tells_its_accuracy() -> None:
    reading = Reading(asked=450, right=378, answered_by={"digits-v1": 450})
    assert str(reading) == "378 of 450 right: 84.0 %"


def test_addresses_are_three_different_ones_on_loopback() -> None:
    found = free_addresses()
    addresses = {found.api, found.gateway, found.metrics}
    assert len(addresses) == 3
    assert {address.partition(":")[0] for address in addresses} == {"127.0.0.1"}


def test_manifests_name_the_models_where_they_are(tmp_path: Path) -> None:
    write_manifests(tmp_path)
    text = (tmp_path / "manifests" / "model-digits-v1.yaml").read_text()
    assert f"file://{EXAMPLES}/models/digits-v1" in text
    assert (tmp_path / "manifests" / "project.yaml").is_file()
    assert not (tmp_path / "manifests" / "deployment.yaml").exists()


@pytest.mark.parametrize("model", ["digits-v1", "digits-v2", "digits-v3-broken"])
def test_each_model_has_a_manifest_that_rolls_it_out(tmp_path: Path, model: str) -> None:
    write_manifests(tmp_path)
    path = tmp_path / f"rollout-{model}.yaml"
    (manifest,) = from_yaml(path.read_text(), source=str(path))
    deployment = manifest.resource
    assert isinstance(deployment, v2.Deployment)
    assert deployment.spec.desired_revision.name == model
    assert deployment.metadata.name == "digits"


def test_load_is_told_with_failures_and_answerers() -> None:
    summary = LoadSummary(
        sent=10,
        ok=9,
        failed=1,
        new_connections=5,
        duration_s=2.0,
        answered_by={"digits-v1": 4, "digits-v2": 5},
        failures=(Failure(text="HTTP 503", count=1, first_s=0.5),),
        latency_ms={"p50": 3.5},
    )
    over_new, by = "5 of them over a new connection", "4 by digits-v1, 5 by digits-v2"
    assert tell_load(summary).splitlines() == [
        f"load: 10 requests sent in 2 s, {over_new}, 1 failed, answered {by}",
        "latency in ms: p50 3.5",
        "failed: 1 x HTTP 503",
    ]


@pytest.mark.parametrize(
    ("system", "machine", "glibc", "said"),
    [
        ("Linux", "x86_64", "2.36", ""),
        ("Linux", "x86_64", "2.35", ""),
        ("Linux", "x86_64", "2.31", "Triton needs glibc 2.35 or newer, this system has 2.31"),
        ("Linux", "x86_64", "", "Triton needs glibc 2.35 or newer, this system has another"),
        ("Linux", "aarch64", "2.36", "Triton and Envoy come for Linux on x86-64"),
        ("Darwin", "arm64", "", "Triton and Envoy come for Linux on x86-64"),
    ],
)
def test_system_that_cannot_run_the_parts_is_told(
    system: str, machine: str, glibc: str, said: str
) -> None:
    assert find_system_obstacle(system, machine, glibc).startswith(said)
    assert bool(find_system_obstacle(system, machine, glibc)) == bool(said)


def test_machine_of_the_tests_can_run_the_demo() -> None:
    assert find_obstacle() == ""


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (["/x/bin/tritonserver", "--model-store=/d"], "Triton"),
        (["/d/backends/python/triton_python_backend_stub", "/d/m"], "model process"),
        (["/x/_bin/envoy", "--config-path"], "Envoy"),
        (["/x/python", "-m", "maserve.cmd.modelsync"], "model-sync"),
        (["/x/python", "-m", "maserve.cmd.main", "up"], "control plane"),
    ],
)
def test_processes_are_told_apart(words: list[str], kind: str) -> None:
    assert kind_of(words) == kind


def test_kinds_are_counted_in_a_fixed_order() -> None:
    kinds = ["control plane", "Triton", "Envoy", "Triton"]
    processes = [Process(pid=number, kind=kind) for number, kind in enumerate(kinds)]
    assert count_kinds(processes) == "2 Triton, 1 Envoy, 1 control plane"
    assert count_kinds([]) == "none"


@pytest.fixture
def sleeper(tmp_path: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A process that was started with a path below the test's folder."""
    program = "import sys; print(flush=True); sys.stdin.read()"
    argv = [sys.executable, "-c", program, str(tmp_path / "data")]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()  # until then its command line may still be empty
        yield process
        process.kill()


def test_process_that_names_the_folder_is_found(
    tmp_path: Path, sleeper: "subprocess.Popen[bytes]"
) -> None:
    assert [each.pid for each in list_processes(tmp_path)] == [sleeper.pid]


def test_this_process_and_strangers_are_not_listed(tmp_path: Path) -> None:
    assert os.getpid() not in [each.pid for each in list_processes(tmp_path)]
    assert list_processes(tmp_path) == ()


def test_files_are_listed_and_folders_are_not(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "file").write_text("")
    assert list_files(tmp_path) == (tmp_path / "a" / "file",)
    assert list_files(tmp_path / "absent") == ()
