"""Digits, version 1: a linear model from 64 pixels (0 to 16) to the digit and ten scores."""

from pathlib import Path

import numpy as np
import triton_python_backend_utils as pb_utils

MAX_PIXEL = 16.0


class TritonPythonModel:
    """One instance of the model; the serving framework calls it from one thread."""

    def initialize(self, args):
        folder = Path(args["model_repository"]) / args["model_version"]
        with np.load(folder / "weights.npz") as weights:
            self._w, self._b = weights["w"], weights["b"]

    def execute(self, requests):
        return [self._answer(request) for request in requests]

    def _answer(self, request):
        images = pb_utils.get_input_tensor_by_name(request, "image").as_numpy()
        scores = softmax(images / MAX_PIXEL @ self._w + self._b)
        digits = scores.argmax(axis=1, keepdims=True).astype(np.int64)
        return pb_utils.InferenceResponse(
            output_tensors=[
                pb_utils.Tensor("digit", digits),
                pb_utils.Tensor("scores", scores.astype(np.float32)),
            ]
        )


def softmax(logits):
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)
