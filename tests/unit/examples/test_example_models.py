"""The example models keep their promises: v2 is really better than v1, v3 refuses to load."""

import csv
import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[3] / "examples"
MODELS = EXAMPLES / "models"


@dataclass
class FakeTensor:
    """A tensor as a model sees it."""

    name: str
    array: Any

    def as_numpy(self) -> Any:
        return self.array


@dataclass
class FakeResponse:
    output_tensors: list[FakeTensor]


class FakeModelError(Exception):
    pass


@pytest.fixture(autouse=True)
def _backend_utils(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("triton_python_backend_utils")
    module.__dict__.update(
        Tensor=FakeTensor,
        InferenceResponse=FakeResponse,
        TritonModelException=FakeModelError,
        get_input_tensor_by_name=lambda request, name: request[name],
    )
    monkeypatch.setitem(sys.modules, "triton_python_backend_utils", module)


def load(name: str) -> Any:
    """Load a model as the serving framework does."""
    path = MODELS / name / "1" / "model.py"
    spec = importlib.util.spec_from_file_location(f"example_{path.parts[-3]}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    model = module.TritonPythonModel()
    model.initialize({"model_repository": str(MODELS / name), "model_version": "1"})
    return model


def held_out() -> tuple[Any, Any]:
    with (MODELS / "heldout.csv").open() as file:
        rows = np.array([[int(cell) for cell in row] for row in list(csv.reader(file))[1:]])
    return rows[:, 1:].astype(np.float32), rows[:, 0]


def answer(model: Any, images: Any) -> tuple[Any, Any]:
    """Return digits and scores of one request with all images."""
    (response,) = model.execute([{"image": FakeTensor("image", images)}])
    digit, scores = response.output_tensors
    return digit.array, scores.array


@pytest.mark.parametrize(("name", "least"), [("digits-v1", 0.80), ("digits-v2", 0.97)])
def test_model_reads_the_held_out_digits(name: str, least: float) -> None:
    images, labels = held_out()
    digits, _ = answer(load(name), images)
    assert (digits[:, 0] == labels).mean() >= least


def test_second_version_is_at_least_a_tenth_better() -> None:
    images, labels = held_out()
    first, _ = answer(load("digits-v1"), images)
    second, _ = answer(load("digits-v2"), images)
    assert (second[:, 0] == labels).mean() - (first[:, 0] == labels).mean() > 0.1


@pytest.mark.parametrize("name", ["digits-v1", "digits-v2"])
def test_outputs_have_the_types_and_shapes_of_the_configuration(name: str) -> None:
    images, _ = held_out()
    digits, scores = answer(load(name), images[:3])
    assert (digits.dtype, digits.shape) == (np.dtype(np.int64), (3, 1))
    assert (scores.dtype, scores.shape) == (np.dtype(np.float32), (3, 10))


def test_broken_model_says_why_it_refuses() -> None:
    with pytest.raises(FakeModelError, match="784 pixels, the input has 64"):
        load("digits-v3-broken")


@pytest.mark.parametrize("name", ["digits-v1", "digits-v2", "digits-v3-broken"])
def test_model_folder_is_named_as_its_configuration(name: str) -> None:
    text = (MODELS / name / "config.pbtxt").read_text()
    assert f'name: "{name}"' in text
    assert (EXAMPLES / "manifests" / f"model-{name}.yaml").is_file()
