"""What a running system holds, sampled from outside, and whether that grows.

A story that repeats itself makes measures swing, and a leak raises what they come back to. So
growth is the lower quartile of the last third of the samples over that of the middle third; the
first third is for warming up. A process is judged from its start to its end, and of each kind of
process the worst one counts.
"""

import os
import sqlite3
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from maserve.cmd.embedded import DATABASE
from maserve.testing.live import LiveControlPlane

Sample = Mapping[str, float]
"""Numbers by what they count; what a process has is called `KIND MEASURE@PID`."""

_FEWEST_SAMPLES = 9
"""A process that lived through fewer says nothing about growth."""

_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """The level of the middle third, how far the last one is over it, and the highest of all."""

    measure: str
    level: float
    growth: float
    peak: float


def take_sample(plane: LiveControlPlane) -> Sample:
    """Look at every process of the plane, at its data folder and at the shared memory."""
    programs = {"control plane": plane.pid, **plane.program_pids()}
    sample: dict[str, float] = {
        "processes": len(plane.leftovers()),
        "shared memory files": len(list(Path("/dev/shm").glob("maserve-*"))),
    }
    for name, pid in programs.items():
        kind = name.rpartition("/")[2]
        for measure, value in _process(pid).items():
            sample[f"{kind} {measure}@{pid}"] = value
    return {**sample, **_folder(plane.data), **_store(plane.data / DATABASE)}


def judge(samples: Sequence[Sample]) -> list[Growth]:
    """Return the growth of each measure by name."""
    series: dict[str, list[float]] = defaultdict(list)
    for sample in samples:
        for name, value in sample.items():
            series[name].append(value)
    worst: dict[str, Growth] = {}
    for name, values in series.items():
        if len(values) >= _FEWEST_SAMPLES:
            found = _grown(name.partition("@")[0], values)
            known = worst.get(found.measure, found)
            worst[found.measure] = max(known, found, key=lambda one: one.growth)
    return [worst[measure] for measure in sorted(worst)]


def _grown(measure: str, values: Sequence[float]) -> Growth:
    third = len(values) // 3
    level = _lower_quartile(values[third : 2 * third])
    growth = _lower_quartile(values[2 * third :]) - level
    return Growth(measure=measure, level=level, growth=growth, peak=max(values))


def _lower_quartile(values: Sequence[float]) -> float:
    return sorted(values)[len(values) // 4]


def _process(pid: int) -> Sample:
    """Return nothing for a process that is gone."""
    home = Path(f"/proc/{pid}")
    try:
        rows = dict(row.split(":", 1) for row in (home / "status").read_text().splitlines())
        descriptors = len(list((home / "fd").iterdir()))
    except OSError:
        return {}
    return {
        "MiB": int(rows.get("VmRSS", "0 kB").split()[0]) / 1024,
        "threads": int(rows["Threads"]),
        "descriptors": descriptors,
    }


def _folder(data: Path) -> Sample:
    """Measure everything but the database."""
    places = [Path(folder, name) for folder, _, names in os.walk(data) for name in names]
    sizes = [_size(path) for path in places if not path.name.startswith(DATABASE)]
    return {"folder MiB": sum(sizes) / _MIB, "folder files": len(sizes)}


def _store(path: Path) -> Sample:
    tables = ("objects", "events", "history")
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        query = " UNION ALL ".join(f"SELECT count(*) FROM {table}" for table in tables)
        counts = [float(row[0]) for row in connection.execute(query)]
    return {
        "store MiB": _size(path) / _MIB,
        "store WAL MiB": _size(path.with_name(f"{path.name}-wal")) / _MIB,
        **{f"store {table}": count for table, count in zip(tables, counts, strict=True)},
    }


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0
