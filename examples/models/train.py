"""Train the two example digit classifiers and write their weights and the held-out digits.

Everything beside this file but `*.npz` and `heldout.csv` is written by hand. Run it again to get
the same bytes (same library versions): the seed is fixed and nothing depends on the time.

    python -m venv /tmp/train && /tmp/train/bin/pip install 'numpy==1.26.4' 'scikit-learn==1.9.1'
    /tmp/train/bin/python examples/models/train.py

The data are the 1,797 public 8x8 digits that come with scikit-learn (pixels 0 to 16). A quarter is
held out from both models.
"""

import csv
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

HERE = Path(__file__).parent
SEED = 20240501
HELD_OUT = 450
FEW = 40
"""How many digits v1 learns from: about four of each, so that v2 has something to improve on."""

MAX_PIXEL = 16.0


def main() -> None:
    images, labels = load_digits(return_X_y=True)
    train_x, held_x, train_y, held_y = train_test_split(
        images, labels, test_size=HELD_OUT, stratify=labels, random_state=SEED
    )
    v1 = train_linear(train_x, train_y)
    v2 = train_network(train_x, train_y)
    write_weights("digits-v1", w=v1.coef_.T, b=v1.intercept_)
    write_weights(
        "digits-v2", w1=v2.coefs_[0], b1=v2.intercepts_[0], w2=v2.coefs_[1], b2=v2.intercepts_[1]
    )
    # Weights of a network for 28x28 images, packed by mistake: `initialize` notices and refuses.
    write_weights(
        "digits-v3-broken",
        w1=np.zeros((784, 32)), b1=np.zeros(32), w2=np.zeros((32, 10)), b2=np.zeros(10),
    )  # fmt: skip
    write_held_out(held_x, held_y)
    print(f"digits-v1 held-out accuracy {v1.score(held_x / MAX_PIXEL, held_y):.4f}")
    print(f"digits-v2 held-out accuracy {v2.score(held_x / MAX_PIXEL, held_y):.4f}")


def train_linear(images: np.ndarray, labels: np.ndarray) -> LogisticRegression:
    """Fit a linear model to the first few digits only."""
    few, _, few_labels, _ = train_test_split(
        images, labels, train_size=FEW, stratify=labels, random_state=SEED
    )
    return LogisticRegression(C=1.0, max_iter=500).fit(few / MAX_PIXEL, few_labels)


def train_network(images: np.ndarray, labels: np.ndarray) -> MLPClassifier:
    """Fit a network with one hidden layer to all digits."""
    network = MLPClassifier(
        hidden_layer_sizes=(64,),
        alpha=1e-2,
        max_iter=400,
        learning_rate_init=3e-3,
        random_state=SEED,
    )
    return network.fit(images / MAX_PIXEL, labels)


def write_weights(model: str, **arrays: np.ndarray) -> None:
    arrays = {name: array.astype(np.float32) for name, array in arrays.items()}
    np.savez_compressed(HERE / model / "1" / "weights.npz", **arrays)


def write_held_out(images: np.ndarray, labels: np.ndarray) -> None:
    """Write one digit a line: its label, then its 64 pixels row by row."""
    with (HERE / "heldout.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["label", *(f"p{index}" for index in range(images.shape[1]))])
        for label, image in zip(labels, images, strict=True):
            writer.writerow([int(label), *(int(pixel) for pixel in image)])


if __name__ == "__main__":
    main()
