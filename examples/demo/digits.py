"""Asking a deployed model to read the held-out digits, through the gateway."""

import asyncio
import csv
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from maserve.host.http import HttpClient

AT_ONCE = 8
TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Digit:
    """One image, 64 pixels from 0 to 16 row by row, and what it shows."""

    label: int
    pixels: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How a model read the digits. `answered_by` counts the answers of each model."""

    asked: int
    right: int
    answered_by: Mapping[str, int]

    @property
    def accuracy_percent(self) -> float:
        return 100.0 * self.right / self.asked if self.asked else 0.0

    def __str__(self) -> str:
        return f"{self.right} of {self.asked} right: {self.accuracy_percent:.1f} %"


def read_digits(path: Path) -> tuple[Digit, ...]:
    """Read `heldout.csv`: a heading, then label and pixels."""
    with path.open(newline="") as file:
        rows = [[int(cell) for cell in row] for row in list(csv.reader(file))[1:]]
    return tuple(Digit(label=row[0], pixels=tuple(row[1:])) for row in rows)


def build_request(digit: Digit) -> bytes:
    """Build a KServe-v2 request with one image."""
    image = {
        "name": "image",
        "datatype": "FP32",
        "shape": [1, len(digit.pixels)],
        "data": list(digit.pixels),
    }
    return json.dumps({"inputs": [image]}).encode()


def parse_digit(answer: Mapping[str, Any]) -> int:
    """Return the digit of an answer."""
    outputs = {output["name"]: output["data"] for output in answer["outputs"]}
    return int(outputs["digit"][0])


def ask_all(url: str, digits: Sequence[Digit]) -> Reading:
    """Send one request a digit, a few at a time. Raises `Unavailable` when nobody answers."""
    return asyncio.run(_ask_all(url, digits))


async def _ask_all(url: str, digits: Sequence[Digit]) -> Reading:
    room = asyncio.Semaphore(AT_ONCE)
    async with HttpClient() as http, asyncio.TaskGroup() as group:
        tasks = [group.create_task(_ask(http, room, url, digit)) for digit in digits]
    answers = [task.result() for task in tasks]
    return Reading(
        asked=len(digits),
        right=sum(read == digit.label for (_, read), digit in zip(answers, digits, strict=True)),
        answered_by=dict(sorted(Counter(model for model, _ in answers).items())),
    )


async def _ask(
    http: HttpClient, room: asyncio.Semaphore, url: str, digit: Digit
) -> tuple[str, int]:
    """Return which model answered and what it read; -1 for an answer that is none."""
    async with room:
        answer = await http.request("POST", url, timeout_s=TIMEOUT_S, body=build_request(digit))
    if answer.status != 200:
        return f"HTTP {answer.status}", -1
    body = answer.json()
    return str(body["model_name"]), parse_digit(body)
