"""From `apply` to ROLLOUT_COMPLETE, minus what the slowest replica of each load step took.

A cluster loads twice, its canary alone and then the rest, and clusters follow one another.
"""

import asyncio

from benchmarks.plane import FAKE, Rollout, measure, median
from benchmarks.report import Figure, print_figures

ROLLOUTS = 5

PROMISES_S = {1: 1.0, 3: 2.0}
"""Clusters to seconds of overhead, canary included."""


def main() -> bool:
    figures: list[Figure] = []
    for clusters, promise in PROMISES_S.items():
        figures += _figures("Triton", clusters, promise, asyncio.run(measure(clusters, ROLLOUTS)))
    for clusters, promise in PROMISES_S.items():
        rollouts = asyncio.run(measure(clusters, ROLLOUTS, (FAKE,)))
        figures += _figures("engine that loads in no time", clusters, promise, rollouts)
    title = f"Overhead of a rollout, two replicas a cluster, median of {ROLLOUTS}"
    return print_figures(title, figures)


def _figures(engine: str, clusters: int, promise: float, rollouts: list[Rollout]) -> list[Figure]:
    where = f"{engine}, {clusters} cluster{'s' if clusters > 1 else ''}"
    return [
        Figure(name=f"{where}: total", value=median([r.total_s for r in rollouts]), unit="s"),
        Figure(
            name=f"{where}: slowest load", value=median([r.slowest_s for r in rollouts]), unit="s"
        ),
        Figure(name=f"{where}: load steps", value=median([r.steps_s for r in rollouts]), unit="s"),
        Figure(
            name=f"{where}: overhead",
            value=median([r.overhead_s for r in rollouts]),
            unit="s",
            promise=promise,
        ),
    ]
