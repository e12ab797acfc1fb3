from pathlib import Path

import pytest

from maserve.artifacts import strip_single_folder, verify_model_folder
from maserve.base.errors import Invalid


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    root.mkdir(exist_ok=True)
    return root


@pytest.mark.parametrize(
    "files",
    [
        pytest.param({"1/model.py": ""}, id="no config"),
        pytest.param({"1/model.py": "", "config.pbtxt": 'name: "m"'}, id="same name"),
        pytest.param({"1/model.py": "", "config.pbtxt": 'backend: "python"'}, id="no name"),
        pytest.param({"12/a": "", "3/b": "", "labels.txt": ""}, id="two versions"),
        pytest.param(
            {"1/m": "", "config.pbtxt": "# x {\ninput [{name: \"other\" dims: [-1]}]\nname : 'm'"},
            id="name of an input is not the model's",
        ),
    ],
)
def test_good_folder_passes(tmp_path: Path, files: dict[str, str]) -> None:
    verify_model_folder(write(tmp_path / "m", files), "m")


@pytest.mark.parametrize(
    ("files", "needle"),
    [
        ({}, "needs a version folder.*holds nothing"),
        ({"model.onnx": ""}, "needs a version folder.*holds model.onnx"),
        ({"01/model.py": "", "v2/x": ""}, "needs a version folder"),
        ({"1": "a file"}, "needs a version folder"),
        ({"1/x": "", "config.pbtxt": 'name: "other"'}, "config.pbtxt names model 'other', not 'm'"),
        ({"1/x": "", "config.pbtxt": "input [{"}, "config.pbtxt is malformed: ends before '}'"),
        ({"1/x": "", "config.pbtxt": "a: 1\n}"}, "malformed: line 2: '}' closes nothing"),
        ({"1/x": "", "config.pbtxt": 'name: "m'}, "malformed: line 1: unexpected"),
    ],
)
def test_bad_folder_is_refused(tmp_path: Path, files: dict[str, str], needle: str) -> None:
    with pytest.raises(Invalid, match=needle):
        verify_model_folder(write(tmp_path / "m", files), "m")


def test_every_problem_is_reported(tmp_path: Path) -> None:
    folder = write(tmp_path / "m", {"config.pbtxt": 'name: "x"'})
    (folder / "1").mkdir()
    (folder / "dangling").symlink_to("nowhere")
    (folder / "out").symlink_to("/etc/hostname")
    with pytest.raises(Invalid) as caught:
        verify_model_folder(folder, "m")
    fields = [problem.field for problem in caught.value.problems]
    assert fields == ["1/", "config.pbtxt", "dangling", "out"]


def test_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="m is no folder"):
        verify_model_folder(tmp_path / "none", "m")


def test_config_that_is_no_text_is_refused(tmp_path: Path) -> None:
    folder = write(tmp_path / "m", {"1/x": ""})
    (folder / "config.pbtxt").write_bytes(b"\xff\xfe")
    with pytest.raises(Invalid, match="not UTF-8"):
        verify_model_folder(folder, "m")


def test_lone_top_folder_is_stripped(tmp_path: Path) -> None:
    folder = write(tmp_path / "m", {"digits-v1/1/model.py": "x", "digits-v1/config.pbtxt": ""})
    strip_single_folder(folder)
    assert sorted(path.name for path in folder.iterdir()) == ["1", "config.pbtxt"]


@pytest.mark.parametrize(
    "files",
    [
        pytest.param({"1/model.py": ""}, id="the folder is a version"),
        pytest.param({"a/1/x": "", "b/1/x": ""}, id="two folders"),
        pytest.param({"a/b/1/x": ""}, id="no layout one level down"),
        pytest.param({"file": ""}, id="a file"),
    ],
)
def test_other_layouts_stay(tmp_path: Path, files: dict[str, str]) -> None:
    folder = write(tmp_path / "m", files)
    strip_single_folder(folder)
    assert all((folder / name).exists() for name in files)
