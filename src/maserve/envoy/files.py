"""The discovery files on disk. Everything here blocks."""

import json
from collections.abc import Sequence
from pathlib import Path

from maserve.base.errors import Unavailable
from maserve.envoy.layout import Layout
from maserve.envoy.manifest import Resource
from maserve.envoy.snapshot import DiscoveryFile, Snapshot


def write_files(changed: Sequence[DiscoveryFile]) -> None:
    """Replace each file by a rename, which is what Envoy watches for.

    Not synced to disk: the state file is, and everything here is rendered from it at start.
    """
    for file in changed:
        temporary = file.path.with_name(f".{file.path.name}.tmp")
        try:
            file.path.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_text(file.text)
            temporary.replace(file.path)
        except OSError as error:
            raise Unavailable(f"cannot write {file.path}: {error.strerror or error}") from error


def remove_files(layout: Layout, kept: frozenset[Path]) -> list[Path]:
    """Remove the files of services and tables besides those in `kept`; return which."""
    folders = (layout.endpoints("x").parent, layout.routes("x").parent)
    found = [path for folder in folders for path in folder.glob("*.json") if path not in kept]
    for path in found:
        path.unlink(missing_ok=True)
    return found


def read_snapshot(layout: Layout) -> Snapshot:
    """Read what is on disk; a file that cannot be read counts as absent and is written anew."""
    clusters = _read_resources(layout.clusters)
    listeners = _read_resources(layout.listeners)
    return Snapshot(
        clusters={row["name"]: row for row in clusters},
        endpoints={
            row["name"]: found[0]
            for row in clusters
            if (found := _read_resources(layout.endpoints(row["name"])))
        },
        routes={
            row["name"]: found[0]
            for row in listeners
            if (found := _read_resources(layout.routes(row["name"])))
        },
        listeners={row["name"]: row for row in listeners},
    )


def _read_resources(path: Path) -> list[Resource]:
    try:
        rows = json.loads(path.read_text())["resources"]
        return list(rows)
    except (OSError, ValueError, KeyError, TypeError):
        return []
