"""A store whose process is killed keeps every write it acknowledged."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

import maserve
from maserve.base.keys import Key
from maserve.resource import clone
from maserve.store.sqlite import SqliteStore
from maserve.testing.store_cases import described
from maserve.wire import v2

WRITER = """
import asyncio, itertools, pathlib, sys
from maserve.store.sqlite import SqliteStore, StoreSettings
from maserve.testing.store_cases import a_model, described

async def write(store, name):
    model = await store.create(a_model(name))
    for step in itertools.count():
        model = await store.update(described(model, f"{step}" + "x" * 5000))
        print(name, model.metadata.resourceVersion, step, flush=True)

async def main():
    # A short history, so that the process is killed while it trims too.
    settings = StoreSettings(history_changes=20)
    async with SqliteStore(pathlib.Path(sys.argv[1]), settings=settings) as store:
        async with asyncio.TaskGroup() as group:
            for number in range(4):
                group.create_task(write(store, f"m{number}"))

asyncio.run(main())
"""


async def acknowledged_until_killed(file: Path, count: int) -> dict[str, tuple[int, int]]:
    """Run the writer, kill it after `count` acknowledgements, return the last of each model."""
    folder = str(Path(next(iter(maserve.__path__))).parent)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", WRITER, str(file)),
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": folder},
    )
    assert process.stdout is not None
    lines = [await process.stdout.readline() for _ in range(count)]
    process.kill()
    lines += (await process.stdout.read()).splitlines(keepends=True)
    await process.wait()
    words = [line.decode().split() for line in lines if line.endswith(b"\n")]
    return {name: (int(version), int(step)) for name, version, step in words}


@pytest.mark.parametrize("count", [1, 57, 230])
async def test_acknowledged_writes_survive_a_kill(tmp_path: Path, count: int) -> None:
    file = tmp_path / "store.db"
    acknowledged = await acknowledged_until_killed(file, count)
    async with SqliteStore(file) as store:
        kept = {each.metadata.name: each for each in (await store.list(v2.Model)).items}
        lost = [
            name
            for name, (version, _) in acknowledged.items()
            if int(kept[name].metadata.resourceVersion) < version
        ]
        assert lost == []
        some = clone(kept["m0"])
        updated = await store.update(described(some, "alive"))
        assert await store.get(v2.Model, Key("prod", "m0")) == updated
