"""`maserve apply` and `maserve delete`."""

import signal
from pathlib import Path

import pytest

from maserve.base.errors import Conflict, Invalid, Problem, Unavailable
from maserve.client import ChangeType
from maserve.testing.command_line import CommandLine, a_change
from maserve.wire import meta, v2

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture
def maserve() -> CommandLine:
    return CommandLine()


def a_manifest(kind: str, name: str, spec: str = "{}") -> str:
    return (
        f"apiVersion: michelangelo.api/v2\nkind: {kind}\nmetadata: {{name: {name}}}\nspec: {spec}\n"
    )


def a_server(uid: str = "") -> v2.InferenceServer:
    return v2.InferenceServer(metadata=meta.ObjectMeta(name="s", namespace="default", uid=uid))


def test_what_others_refer_to_is_applied_first(maserve: CommandLine) -> None:
    kinds = ("Deployment", "InferenceServer", "Model", "Project")
    text = "---\n".join(a_manifest(kind, "x") for kind in kinds)
    result = maserve("apply", "-f", "-", stdin=text)
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "Project x/x created",
        "Model default/x created",
        "InferenceServer default/x created",
        "Deployment default/x created",
    ]


def test_a_folder_is_all_its_manifests(maserve: CommandLine) -> None:
    result = maserve("apply", "-f", str(EXAMPLES / "manifests"))
    assert [line.split()[:2] for line in result.stdout.splitlines()] == [
        ["Project", "digits/digits"],
        ["Model", "digits/digits-v1"],
        ["Model", "digits/digits-v2"],
        ["Model", "digits/digits-v3-broken"],
        ["InferenceServer", "digits/digits-server"],
        ["Deployment", "digits/digits"],
    ]


def test_applying_again_tells_changed_from_unchanged(maserve: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "m.yaml"
    file.write_text(a_manifest("Model", "m") + "---\n" + a_manifest("Model", "n"))
    maserve("apply", "-f", str(file))
    file.write_text(a_manifest("Model", "m", "{source: a}") + "---\n" + a_manifest("Model", "n"))
    assert maserve("apply", "-f", str(file)).stdout.splitlines() == [
        "Model default/m updated",
        "Model default/n unchanged",
    ]


def test_everything_wrong_is_told_and_nothing_is_written(
    maserve: CommandLine, tmp_path: Path
) -> None:
    (tmp_path / "a.yaml").write_text(a_manifest("Model", "good"))
    (tmp_path / "b.yaml").write_text(
        a_manifest("Model", "m") + "---\n" + a_manifest("Deployment", "d", "{desiredRevison: {}}")
    )
    (tmp_path / "c.yaml").write_text("kind: [unclosed")
    (tmp_path / "d.json").write_text('{"kind": "Pod", "apiVersion": "michelangelo.api/v2"}')
    result = maserve("apply", "-f", str(tmp_path))
    assert (result.exit_code, result.stdout, maserve.api.calls) == (1, "", [])
    lines = result.stderr.splitlines()
    assert [line.startswith("error: ") for line in lines] == [True] * 4
    assert "spec.desiredRevison" in lines[0]
    assert f"({tmp_path}/b.yaml:9)" in lines[0]
    assert f"{tmp_path}/c.yaml:1:" in lines[1]
    assert "kind is an unknown kind 'Pod'" in lines[2]
    assert f"({tmp_path}/d.json:1)" in lines[2]
    assert lines[3] == "error: nothing was changed"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- a list", "must be an object"),
        ("metadata: {name: x}", "kind must name a kind"),
        (a_manifest("Model", "''"), "metadata.name cannot be empty (stdin:1)"),
        ("", "no documents in stdin"),
    ],
)
def test_documents_that_are_no_objects_are_refused(
    maserve: CommandLine, text: str, said: str
) -> None:
    result = maserve("apply", "-f", "-", stdin=text)
    assert (result.exit_code, said in result.stderr) == (1, True)


def test_a_refused_object_does_not_stop_the_others(maserve: CommandLine) -> None:
    maserve.api.refuse["a"] = Invalid(Problem("spec.tier", "must be in the range [1,5]"))
    maserve.api.refuse["b"] = Conflict("Model", "default/b")
    text = "---\n".join(a_manifest("Model", name) for name in "abc")
    result = maserve("apply", "-f", "-", stdin=text)
    assert (result.exit_code, result.stdout) == (1, "Model default/c created\n")
    assert result.stderr.splitlines() == [
        "error: stdin:1: Model default/a: spec.tier must be in the range [1,5]",
        (
            "error: stdin:6: Model default/b: Model default/b was changed meanwhile; "
            "run the command again"
        ),
    ]


def test_dry_run_stores_nothing(maserve: CommandLine) -> None:
    result = maserve("apply", "--dry-run", "-f", "-", stdin=a_manifest("Model", "m"))
    assert result.stdout == "Model default/m created (dry run)\n"
    assert (maserve.api.objects, maserve.api.calls) == ({}, ["check Model m"])


def test_dates_in_manifests_stay_text(maserve: CommandLine) -> None:
    maserve("apply", "-f", "-", stdin=a_manifest("Model", "m", "{source: 2024-01-01}"))
    (model,) = maserve.api.objects.values()
    assert isinstance(model, v2.Model)
    assert model.spec.source == "2024-01-01"


def test_files_are_utf_8_with_or_without_a_mark(maserve: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "m.yaml"
    file.write_bytes(a_manifest("Model", "m", "{source: caf\u00e9}").encode("utf-8-sig"))
    assert maserve("apply", "-f", str(file)).stdout == "Model default/m created\n"
    (model,) = maserve.api.objects.values()
    assert isinstance(model, v2.Model)
    assert model.spec.source == "caf\u00e9"


def test_a_file_that_is_no_text_is_named(maserve: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "m.yaml"
    file.write_bytes(b"\xff\xfe\x00")
    assert f"cannot read {file}: it is no text" in maserve("apply", "-f", str(file)).stderr


def test_a_file_that_is_not_there_is_named(maserve: CommandLine) -> None:
    assert "cannot read nowhere.yaml" in maserve("apply", "-f", "nowhere.yaml").stderr


def test_an_empty_folder_is_an_error(maserve: CommandLine, tmp_path: Path) -> None:
    assert f"files in {tmp_path}" in maserve("apply", "-f", str(tmp_path)).stderr


def test_an_unreachable_api_server_is_told_with_the_next_step(maserve: CommandLine) -> None:
    maserve.connect_error = Unavailable("nobody at 127.0.0.1:1")
    result = maserve("get", "model", "--api-address", "127.0.0.1:1")
    assert result.exit_code == 1
    assert result.stderr == (
        "error: nobody at 127.0.0.1:1; "
        "--api-address or MASERVE_API_ADDRESS names another API server\n"
    )


def test_the_address_comes_from_the_environment(maserve: CommandLine) -> None:
    maserve("get", "model", environment={"MASERVE_API_ADDRESS": "127.0.0.1:7"})
    maserve("get", "model")
    assert maserve.addresses == ["127.0.0.1:7", "127.0.0.1:15566"]


def test_deleting_waits_until_the_object_is_gone(maserve: CommandLine) -> None:
    maserve.api.put(a_server("u1"))
    result = maserve("delete", "inference_server", "s")
    assert (result.exit_code, result.stdout) == (0, "InferenceServer default/s deleted\n")


def test_a_deletion_held_by_finalizers_shows_progress(maserve: CommandLine) -> None:
    held = a_server("u1")
    held.status.state = v2.INFERENCE_SERVER_STATE_DELETING
    maserve.api.put(held)
    maserve.api.on_watch = [lambda: maserve.api.put(held)]
    result = maserve("delete", "inference_server", "s")
    assert result.stdout == "InferenceServer default/s deleted\n"
    assert result.stderr == "InferenceServer default/s: DELETING\n"


def test_deleting_without_waiting_only_asks(maserve: CommandLine) -> None:
    maserve.api.put(a_server())
    result = maserve("delete", "inference_server", "s", "--no-wait")
    assert result.stdout == "InferenceServer default/s deletion requested\n"


def test_deleting_what_is_missing_fails_unless_that_is_fine(maserve: CommandLine) -> None:
    assert maserve("delete", "model", "m").exit_code == 1
    result = maserve("delete", "model", "m", "--ignore-not-found")
    assert (result.exit_code, result.stdout) == (0, "Model default/m is not there\n")


def test_manifests_are_deleted_in_the_opposite_order(maserve: CommandLine) -> None:
    kinds = ("InferenceServer", "Deployment", "Model")
    text = "---\n".join(a_manifest(kind, "x") for kind in kinds)
    maserve("apply", "-f", "-", stdin=text)
    result = maserve("delete", "-f", "-", stdin=text)
    assert result.exit_code == 0
    assert [line.split()[0] for line in result.stdout.splitlines()] == [
        "Deployment",
        "InferenceServer",
        "Model",
    ]


@pytest.mark.parametrize("words", [(), ("model",), ("model", "m", "-f", "-")])
def test_delete_wants_a_name_or_a_file(maserve: CommandLine, words: tuple[str, ...]) -> None:
    assert "give either KIND and NAME or -f FILE" in maserve("delete", *words).stderr


def test_a_wait_that_takes_too_long_ends_with_two(maserve: CommandLine) -> None:
    maserve.api.put(a_server())
    result = maserve("wait", "inferenceserver", "s", "--for=state=SERVING", "--timeout", "10ms")
    assert (result.exit_code, result.stdout) == (2, "")
    assert (
        "error: InferenceServer default/s is not at state=SERVING after 10ms: no status yet"
        in result.stderr
    )


def test_a_wait_says_when_it_is_over(maserve: CommandLine) -> None:
    serving = a_server()
    serving.status.state = v2.INFERENCE_SERVER_STATE_SERVING
    maserve.api.put(a_server())
    maserve.api.steps = [a_change(ChangeType.MODIFIED, serving)]
    result = maserve("wait", "inferenceserver", "s", "--for=state=serving")
    assert (result.exit_code, result.stdout) == (
        0,
        "InferenceServer default/s is at state=SERVING\n",
    )
    assert result.stderr.splitlines() == [
        "InferenceServer default/s: no status yet",
        "InferenceServer default/s: SERVING",
    ]


@pytest.mark.parametrize("text", ["5", "-5m", "soon"])
def test_a_timeout_that_is_none_is_wrong_usage(maserve: CommandLine, text: str) -> None:
    result = maserve("wait", "model", "m", "--for=delete", f"--timeout={text}")
    assert (result.exit_code, "Traceback" in result.output) == (2, False)


def test_an_object_that_is_there_twice_is_refused(maserve: CommandLine) -> None:
    text = a_manifest("Model", "m") + "---\n" + a_manifest("Model", "m", "{source: b}")
    result = maserve("apply", "-f", "-", stdin=text)
    assert (result.exit_code, maserve.api.calls) == (1, [])
    assert result.stderr.splitlines()[0] == (
        "error: Model default/m is there twice (stdin:1, stdin:6): keep one of them"
    )


def test_applying_what_is_being_deleted_fails(maserve: CommandLine) -> None:
    text = a_manifest("Model", "m") + "---\n" + a_manifest("Model", "n")
    maserve.api.dying.add("m")
    result = maserve("apply", "-f", "-", stdin=text)
    assert (result.exit_code, result.stdout) == (1, "Model default/n created\n")
    assert result.stderr == (
        "error: stdin:1: Model default/m is being deleted, and what was applied goes with it; "
        "`maserve wait Model m -n default --for=delete`, then apply again\n"
    )


def test_an_interrupted_deletion_says_that_it_goes_on(maserve: CommandLine) -> None:
    def hold_and_interrupt() -> None:
        maserve.api.put(a_server("u1"))
        maserve.api.steps.clear()
        signal.raise_signal(signal.SIGINT)

    maserve.api.put(a_server("u1"))
    maserve.api.on_watch = [hold_and_interrupt]
    result = maserve("delete", "inference_server", "s")
    assert (result.exit_code, result.stdout) == (130, "")
    assert result.stderr.endswith("the deletion of InferenceServer default/s goes on\n")


@pytest.mark.parametrize("text", ["http://127.0.0.1:15566", "127.0.0.1", "", ":1", "a:b"])
def test_an_address_that_is_none_is_wrong_usage(maserve: CommandLine, text: str) -> None:
    result = maserve("get", "model", "--api-address", text)
    assert (result.exit_code, maserve.addresses) == (2, [])
    assert f"must be HOST:PORT, such as 127.0.0.1:15566, or unix:PATH, not '{text}'" in (
        " ".join(result.stderr.split())
    )


@pytest.mark.parametrize("text", ["unix:/run/maserve.sock", "[::1]:15566", "localhost:1"])
def test_addresses_of_every_kind_are_taken(maserve: CommandLine, text: str) -> None:
    maserve("get", "model", "--api-address", text)
    assert maserve.addresses == [text]


@pytest.mark.parametrize(
    "words",
    [
        ("describe", "model", ""),
        ("wait", "deployment", "", "--for=delete"),
        ("predict", "", "-f", "-"),
        ("logs", ""),
    ],
    ids=lambda words: words[0],
)
def test_an_empty_name_is_wrong_usage(maserve: CommandLine, words: tuple[str, ...]) -> None:
    result = maserve(*words)
    assert (result.exit_code, "cannot be empty" in result.stderr) == (2, True)


@pytest.mark.parametrize(
    "words",
    [
        ("get", "pod"),
        ("get", "model", "m", "-A"),
        ("describe", "pod", "p"),
        ("delete", "pod", "p"),
        ("delete", "model"),
        ("wait", "pod", "p", "--for=delete"),
        ("wait", "model", "m", "--for=ready"),
        ("wait", "model", "m", "--for=state=ready"),
    ],
    ids=" ".join,
)
def test_a_wrong_command_line_ends_with_two(maserve: CommandLine, words: tuple[str, ...]) -> None:
    result = maserve(*words)
    assert (result.exit_code, result.stderr.startswith("error: ")) == (2, True)


def test_waiting_for_a_deletion_says_that_it_is_deleted(maserve: CommandLine) -> None:
    result = maserve("wait", "model", "m", "--for=delete")
    assert (result.exit_code, result.stdout) == (0, "Model default/m is deleted\n")
    maserve.api.put(a_server())
    late = maserve("wait", "inferenceserver", "s", "--for=delete", "--timeout=10ms")
    assert "InferenceServer default/s is not deleted after 10ms" in late.stderr
