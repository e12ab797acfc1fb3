"""Models of a few lines for real Triton: they answer at once and load in a fraction of a second."""

from pathlib import Path

REQUEST = """{"inputs": [{"name": "IN", "datatype": "FP32", "shape": [1, 1], "data": [21]}]}"""

_MODEL = """
import os
import time
import numpy as np
import triton_python_backend_utils as pb


class TritonPythonModel:
    def initialize(self, args):
        time.sleep({load_s})
        {fails}
        if {flag!r} and os.path.exists({flag!r}):
            raise RuntimeError(open({flag!r}).read())

    def execute(self, requests):
        if {fatal!r} and os.path.exists({fatal!r}):
            os._exit(1)
        ins = [pb.get_input_tensor_by_name(one, "IN").as_numpy() for one in requests]
        return [pb.InferenceResponse([pb.Tensor("OUT", one * 2)]) for one in ins]
"""

_CONFIG = """name: "{name}"
backend: "python"
max_batch_size: 8
input [ {{ name: "IN" data_type: TYPE_FP32 dims: [ 1 ] }} ]
output [ {{ name: "OUT" data_type: TYPE_FP32 dims: [ 1 ] }} ]
instance_group [ {{ count: 1, kind: KIND_CPU }} ]
"""


def write_model(
    folder: Path,
    name: str,
    *,
    load_s: float = 0.0,
    fails: str = "",
    flag: Path | None = None,
    fatal: Path | None = None,
) -> str:
    """Write a model that doubles its input and return its URI.

    It takes `load_s` to load; with `fails` it refuses to load, with that reason, and so it does
    while there is a file `flag`, with the reason that stands in it. While there is a file `fatal`
    a request ends its process.
    """
    version = folder / name / "1"
    version.mkdir(parents=True)
    refusal = f"raise RuntimeError({fails!r})" if fails else ""
    text = _MODEL.format(load_s=load_s, fails=refusal, flag=str(flag or ""), fatal=str(fatal or ""))
    (version / "model.py").write_text(text)
    (folder / name / "config.pbtxt").write_text(_CONFIG.format(name=name))
    return f"file://{folder / name}"
