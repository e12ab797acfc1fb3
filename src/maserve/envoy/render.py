"""Renders states to files, and keeps what it has rendered: a change costs what it touches."""

from collections.abc import Mapping
from pathlib import Path

from maserve.base.keys import ClusterId
from maserve.envoy.layout import Layout
from maserve.envoy.manifest import Resource
from maserve.envoy.route_manifest import TableRule, build_table
from maserve.envoy.snapshot import (
    DiscoveryFile,
    FileContent,
    Snapshot,
    build_file,
    build_snapshot,
    contents,
    table_rules,
    tables_of,
)
from maserve.envoy.state import State
from maserve.envoy.types import EnvoySettings


class Renderer:
    """Gives what the pure builders give. Called from one thread at a time."""

    def __init__(self, layout: Layout, settings: EnvoySettings) -> None:
        self._layout = layout
        self._settings = settings
        self._tables: Mapping[ClusterId | None, tuple[tuple[TableRule, ...], Resource]] = {}
        self._files: Mapping[Path, tuple[FileContent, DiscoveryFile]] = {}

    def snapshot(self, state: State) -> Snapshot:
        """Render the resources of a state."""
        self._tables = {cluster: self._table(state, cluster) for cluster in tables_of(state)}
        tables = {cluster: table for cluster, (_, table) in self._tables.items()}
        return build_snapshot(state, tables, self._layout, self._settings)

    def files(self, snapshot: Snapshot) -> tuple[DiscoveryFile, ...]:
        """Render the files of a snapshot, in the order of writing."""
        known = {
            content.path: (content, self._file(content))
            for content in contents(snapshot, self._layout)
        }
        self._files = known
        return tuple(file for _, file in known.values())

    def _table(
        self, state: State, cluster: ClusterId | None
    ) -> tuple[tuple[TableRule, ...], Resource]:
        rules = table_rules(state, cluster)
        known = self._tables.get(cluster)
        if known is not None and known[0] == rules:
            return known
        return rules, build_table(cluster, rules, self._settings)

    def _file(self, content: FileContent) -> DiscoveryFile:
        known = self._files.get(content.path)
        return known[1] if known is not None and known[0] == content else build_file(content)
