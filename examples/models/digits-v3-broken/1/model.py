"""Digits, version 3: packed with the weights of another model, so it refuses to load."""

from pathlib import Path

import numpy as np
import triton_python_backend_utils as pb_utils

MAX_PIXEL = 16.0
PIXELS = 64


class TritonPythonModel:
    """One instance of the model; the serving framework calls it from one thread."""

    def initialize(self, args):
        folder = Path(args["model_repository"]) / args["model_version"]
        with np.load(folder / "weights.npz") as weights:
            self._hidden = weights["w1"], weights["b1"]
            self._output = weights["w2"], weights["b2"]
        expected = self._hidden[0].shape[0]
        if expected != PIXELS:
            raise pb_utils.TritonModelException(
                f"weights.npz is for images of {expected} pixels, the input has {PIXELS}"
            )

    def execute(self, requests):
        return [self._answer(request) for request in requests]

    def _answer(self, request):
        images = pb_utils.get_input_tensor_by_name(request, "image").as_numpy()
        hidden = np.maximum(images / MAX_PIXEL @ self._hidden[0] + self._hidden[1], 0.0)
        scores = softmax(hidden @ self._output[0] + self._output[1])
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
